package plan

import (
	"fmt"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// lostSlots returns the slots of a shard that no living copy holds, and which
// copy may still be alive, if any. A copy counts as gone only when its process is
// known to have ended: one that is merely out of reach may come back with data.
func (m *model) lostSlots(shard int32) (slots.Set, string) {
	if m.Creating {
		return slots.Set{}, ""
	}
	gone := m.Recorded[shard].Intersect(m.unserved())
	if gone.Empty() {
		return slots.Set{}, ""
	}
	for _, n := range m.nodes {
		if n.Position.Shard != shard || n.Lifecycle == v1alpha1.LifecycleJoining {
			continue
		}
		v := m.view(n)
		switch {
		case v != nil && v.Reachable && v.Role == topology.RoleReplica && v.Replication.HasCopy():
			return slots.Set{}, "" // it is to be promoted
		case v != nil && v.Reachable:
		case !n.Proven():
			return gone, fmt.Sprintf("node %s may still hold the data of shard %d", n.Name, shard)
		}
	}
	return gone, ""
}

// unserved returns the slots without an owner that answers.
func (m *model) unserved() slots.Set {
	free := slots.All()
	for id, owned := range m.View.Owners {
		if v, ok := m.View.ByID(id); ok && v.Reachable {
			free = free.Minus(owned)
		}
	}
	return free
}

// AwaitedCopies says, for each shard without a copy that answers, which node is
// waited for because it may still have the data.
func AwaitedCopies(s State) []string {
	m := newModel(s)
	var out []string
	for shard := range s.Target.Shards {
		if gone, waiting := m.lostSlots(shard); !gone.Empty() && waiting != "" {
			out = append(out, waiting)
		}
	}
	return out
}

// replaceLost gives the slots of a shard that has no copy left to a new empty
// primary. Its data is gone, so this happens only once nobody can still have it,
// or the user has accepted the loss.
func replaceLost(m *model) ([]Action, string) {
	if m.Creating {
		return nil, ""
	}
	var actions []Action
	free := m.View.UnassignedSlots().Intersect(m.lost)
	for shard := range m.Target.Shards {
		lost := m.Recorded[shard].Intersect(free)
		if lost.Empty() {
			continue
		}
		n, hollow, ok := m.vessel(shard)
		switch {
		case ok:
			actions = append(actions, Action{
				Kind: ReplaceLost, Node: n.Name, Position: n.Position, Slots: lost,
				Reason: fmt.Sprintf("no copy of shard %d is left: node %s takes slots %s without data", shard, n.Name, lost),
			})
		case hollow.Name != "":
			return []Action{{
				Kind: DeleteNode, Node: hollow.Name, Position: hollow.Position,
				Reason: fmt.Sprintf("node %s follows a primary that is gone and holds no copy", hollow.Name),
			}}, ""
		}
	}
	return actions, ""
}

// vessel returns an empty primary of a shard that can take its slots; hollow is a
// node that is in the way of one: a replica whose first sync never ended.
func (m *model) vessel(shard int32) (empty, hollow Node, ok bool) {
	for _, n := range m.live() {
		v := m.view(n)
		if n.Position.Shard != shard || v == nil || !v.Reachable {
			continue
		}
		if v.Role == topology.RolePrimary && v.Keys == 0 {
			return n, Node{}, true
		}
		hollow = n
	}
	return Node{}, hollow, false
}

// hungFor is how long a node may be silent before it is replaced. A probe of its
// port passes on a server that hangs, so nobody else would end it.
const hungFor = time.Minute

// dropHung deletes a node that has not answered for long and that the others call
// failed, once nothing depends on it: its slots have another owner.
func dropHung(m *model) ([]Action, string) {
	var actions []Action
	for _, n := range m.live() {
		v := m.view(n)
		if n.Pod != PodRunning || n.Silent < hungFor || v == nil || v.Reachable || n.Lifecycle != v1alpha1.LifecycleActive {
			continue
		}
		voters := len(m.reachable())
		if n.NodeID == "" || 2*len(v.FailedBy) <= voters || !m.View.Owners[n.NodeID].Empty() {
			continue
		}
		actions = append(actions, Action{
			Kind: DeleteNode, Node: n.Name, Position: n.Position,
			Reason: fmt.Sprintf("node %s has not answered for %s and the others call it failed", n.Name, hungFor),
		})
	}
	return actions, ""
}
