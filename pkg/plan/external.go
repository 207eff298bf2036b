package plan

import (
	"fmt"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// External is what external access adds to a node.
type External struct {
	// Exposed is whether the node has a port outside: it was made with external
	// access, and that is on.
	Exposed bool
	// Labelled is whether its pod has the label by which that port leads to it.
	Labelled bool
	// Opening is whether clients, who are directed to that port, may still be refused there:
	// the label or the readiness of its pod is too new for every proxy to know of it.
	Opening bool
}

// hidden reports whether a node should have a port outside that does not lead to it
// yet.
func (n Node) hidden() bool { return n.External.Exposed && !n.External.Labelled }

// outOfReach says why clients outside may not reach a node yet, which is about to serve
// them.
func (m *model) outOfReach(n Node) string {
	ending := m.Ending[n.Position.Shard]
	switch {
	case n.hidden():
		return fmt.Sprintf("the outside port of replica %s does not lead to it yet", n.Name)
	case n.External.Exposed && n.External.Opening:
		return fmt.Sprintf("the outside port of replica %s has only just come to lead to it", n.Name)
	case n.External.Exposed && ending != "":
		return fmt.Sprintf("clients outside may still be connected to pod %s, which ends, by the outside port of replica %s", ending, n.Name)
	}
	return ""
}

// Labels are the nodes whose label for external access is to come off, and those
// that get it: a port outside leads to at most one node, so within a position a label
// is given only when no other node has one. Whether the Service has taken notice of
// what came off is for the caller to see.
func Labels(s State) (off, on []string) {
	m := newModel(s)
	byPosition := map[Position][]Node{}
	for _, n := range m.nodes {
		switch {
		case n.External.Exposed && !n.Dead():
			byPosition[n.Position] = append(byPosition[n.Position], n)
		case n.External.Labelled:
			off = append(off, n.Name)
		}
	}
	for _, nodes := range byPosition {
		holder := m.holder(nodes)
		taken := false
		for _, n := range nodes {
			if n.Name != holder.Name && n.External.Labelled {
				off, taken = append(off, n.Name), true
			}
		}
		if !taken && holder.hidden() {
			on = append(on, holder.Name)
		}
	}
	slices.Sort(off)
	slices.Sort(on)
	return off, on
}

// holder returns the node that the port of a position is to lead to: the primary,
// else the one that stays, else the one that has it already.
func (m *model) holder(nodes []Node) Node {
	rank := func(n Node) int {
		owner, owned := m.owner(n.Position.Shard)
		switch {
		case owned && owner.Name == n.Name:
			return 0
		case n.Silent >= nodeTimeout:
			return 5
		case n.Lifecycle == v1alpha1.LifecycleActive && n.Outdated == "":
			return 1
		case n.Lifecycle == v1alpha1.LifecycleActive:
			return 2
		case n.Lifecycle == v1alpha1.LifecycleLeaving:
			return 4
		}
		return 3
	}
	return slices.MinFunc(nodes, func(a, b Node) int {
		if ra, rb := rank(a), rank(b); ra != rb {
			return ra - rb
		}
		switch {
		case a.External.Labelled == b.External.Labelled:
			return 0
		case a.External.Labelled:
			return -1
		}
		return 1
	})
}

// portMoves says that the port of a node that goes has yet to be given to its
// successor: until then clients outside would reach neither.
func (m *model) portMoves(n Node) string {
	if !n.External.Exposed {
		return ""
	}
	for _, other := range m.live() {
		if other.Position == n.Position && other.Name != n.Name && other.Outdated == "" && other.hidden() {
			return fmt.Sprintf("the outside port of shard %d, node %d moves from %s to %s", n.Position.Shard, n.Position.Index, n.Name, other.Name)
		}
	}
	return ""
}

// unexposed says why a shard must not be given slots yet: clients are directed to
// outside names, and there is no way to this shard.
func (m *model) unexposed(shard int32) string {
	if why := m.Unexposed[shard]; why != "" {
		return fmt.Sprintf("shard %d can't be reached from outside yet: %s; no slots are moved to it", shard, why)
	}
	return ""
}

// nameUnseen says who has not heard of the name that a node announces. A name comes
// with the second message of a new member, and until then clients that are given names
// would be given a question mark for it, once it serves a shard. Nobody uses a cluster
// that is still being created.
func (m *model) nameUnseen(n Node) string {
	if m.Creating {
		return ""
	}
	v := m.view(n)
	own := v.Knows[v.ID].Hostname
	for _, viewer := range m.reachable() {
		other := m.view(viewer)
		if row, knows := other.Knows[v.ID]; knows && !other.Isolated && row.Hostname != own {
			return fmt.Sprintf("node %s has not heard of the name of node %s yet", viewer.Name, n.Name)
		}
	}
	return ""
}
