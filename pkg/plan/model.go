package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// model is a State with the look-ups that the rules share.
type model struct {
	State
	View    topology.View    // of the nodes that are to stay
	answers []topology.Reply // of those, by name
	// answering are the nodes that answered.
	answering []Node
	// free are the slots that no table gives to a node that answers.
	free    slots.Set
	nodes   []Node // sorted by position
	byName  map[string]Node
	desired []slots.Set // slots of each shard in a new cluster
	lost    slots.Set   // slots whose data is gone for good
}

func newModel(s State) *model {
	m := &model{State: s, nodes: slices.Clone(s.Nodes), byName: map[string]Node{}}
	slices.SortFunc(m.nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Position.Shard, b.Position.Shard),
			cmp.Compare(a.Position.Index, b.Position.Index), cmp.Compare(a.Name, b.Name))
	})
	for _, n := range m.nodes {
		m.byName[n.Name] = n
	}
	var replies []topology.Reply
	for _, reply := range s.Replies {
		if n, ok := m.byName[reply.Node]; ok && !n.Dead() && n.Lifecycle != v1alpha1.LifecycleLeaving {
			replies = append(replies, reply)
		}
	}
	m.View = topology.Merge(replies)
	slices.SortFunc(replies, func(a, b topology.Reply) int { return cmp.Compare(a.Node, b.Node) })
	m.answers = replies
	for _, n := range m.nodes {
		if v, ok := m.View.Nodes[n.Name]; ok && v.Reachable {
			m.answering = append(m.answering, n)
		}
	}
	m.free = m.withoutServer()
	m.desired = slots.Split(int(s.Target.Shards))
	for shard := range m.shardCount() {
		if gone, waiting := m.lostSlots(shard); waiting == "" || s.LossAccepted {
			m.lost = m.lost.Union(gone)
		}
	}
	return m
}

// wished reports whether the target has the position.
func (m *model) wished(p Position) bool {
	return p.Shard < m.Target.Shards && p.Index <= m.Target.ReplicasPerShard
}

// live returns the nodes that are not dead, not on their way out, and in a wished
// position.
func (m *model) live() []Node {
	var out []Node
	for _, n := range m.nodes {
		if !n.Dead() && n.Lifecycle != v1alpha1.LifecycleLeaving && m.wished(n.Position) {
			out = append(out, n)
		}
	}
	return out
}

// reachable returns the nodes that answered. Dead ones are never among them: a
// terminating pod gets no command.
func (m *model) reachable() []Node { return m.answering }

// view returns what was seen of a node that answered.
func (m *model) view(n Node) *topology.NodeView { return m.View.Nodes[n.Name] }

// owner returns the node of a shard that owns slots. With several (a failover
// that not everybody knows of yet) the highest config epoch wins, as it does for
// the servers.
func (m *model) owner(shard int32) (Node, bool) {
	var best Node
	found := false
	for _, n := range m.reachable() {
		v := m.view(n)
		if n.Position.Shard != shard || v.Role != topology.RolePrimary || v.Slots.Empty() {
			continue
		}
		if !found || v.ConfigEpoch > m.view(best).ConfigEpoch {
			best, found = n, true
		}
	}
	return best, found
}

// designated returns the node that is to own the slots of a shard that never had
// any: the one that others follow already, else the first that answers. A shard
// whose replicas follow a member that is gone has none: one of them holds its data
// and is about to be elected, and nothing may be put above it meanwhile.
func (m *model) designated(shard int32) (Node, bool) {
	if slices.ContainsFunc(m.orphans(shard), m.surviving) {
		return Node{}, false
	}
	var first Node
	found := false
	for _, n := range m.live() {
		if n.Position.Shard != shard {
			continue
		}
		if v := m.view(n); v != nil && v.Reachable && v.Role == topology.RoleReplica {
			p, ok := m.View.ByID(v.PrimaryID)
			switch {
			case ok && m.byName[p.Node].Position.Shard == shard:
				return m.byName[p.Node], true
			case ok, m.View.Owners[v.PrimaryID].Empty():
				continue // a copy of nothing or of another shard, which is to follow another
			}
			return Node{}, false
		}
		if v, best := m.view(n), m.view(first); !found || v != nil && v.Reachable && (best == nil || !best.Reachable) {
			first, found = n, true
		}
	}
	return first, found
}

// primary returns the owner of a shard's slots or, in a shard that has none yet,
// the node that is to own them.
func (m *model) primary(shard int32) (Node, bool) {
	if n, ok := m.owner(shard); ok {
		return n, true
	}
	return m.designated(shard)
}

// NodeName returns the name of a node to create: <cluster>-<5 hex>. It follows
// from the cluster's identity, the position and what is replaced, so that a
// manager that creates it twice, because it was killed or looks at an old cache,
// meets its own object instead of making a second node. Attempt counts the names
// that other nodes, or pods of former ones, already have.
func NodeName(s State, p Position, predecessor string, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d/%s/%d", s.UID, p.Shard, p.Index, predecessor, attempt))
	return s.Cluster + "-" + hex.EncodeToString(sum[:])[:5]
}
