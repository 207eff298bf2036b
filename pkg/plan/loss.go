package plan

import (
	"fmt"
	"slices"
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
	gone := m.belonging(shard).Intersect(m.unserved())
	if gone.Empty() {
		return slots.Set{}, ""
	}
	if slices.ContainsFunc(m.orphans(shard), m.surviving) {
		return slots.Set{}, "" // it is to be promoted
	}
	if n, ok := m.olderCopy(shard); ok {
		return gone, fmt.Sprintf("node %s holds an older copy of shard %d, which was not in sync", n.Name, shard)
	}
	if id, stranger := m.stranger(gone); stranger {
		return gone, fmt.Sprintf("member %s belongs to no node, but still serves slots of shard %d", id, shard)
	}
	if n, awaited := m.awaitedCopy(shard); awaited {
		return gone, fmt.Sprintf("node %s may still hold the data of shard %d", n.Name, shard)
	}
	return gone, ""
}

// awaitedCopy returns a node of a shard that does not answer and may have a copy
// all the same. One that never joined has none, unless its gate says otherwise or
// it was given slots; once its pod is gone nobody can tell.
func (m *model) awaitedCopy(shard int32) (Node, bool) {
	for _, n := range m.nodes {
		v := m.view(n)
		switch {
		case n.Position.Shard != shard || n.Proven() || v != nil && v.Reachable:
		case n.NodeID == "" || n.Lifecycle == v1alpha1.LifecycleJoining && !n.InSync && n.Pod != PodGone && m.View.Owners[n.NodeID].Empty():
		default:
			return n, true
		}
	}
	return Node{}, false
}

// stranger returns a member that no node is known for, although it lives and owns
// some of the slots: somebody has deleted its node, and its pod follows later.
func (m *model) stranger(owned slots.Set) (string, bool) {
	for _, id := range m.ownerIDs() {
		if _, known := m.byNodeID(id); !known && !m.View.Owners[id].Intersect(owned).Empty() && m.View.Alive(id) {
			return id, true
		}
	}
	return "", false
}

// orphans returns the replicas of a shard whose primary does not answer.
func (m *model) orphans(shard int32) []Node {
	var out []Node
	for _, n := range m.reachable() {
		v := m.view(n)
		if n.Position.Shard != shard || v.Role != topology.RoleReplica {
			continue
		}
		if p, ok := m.View.ByID(v.PrimaryID); !ok || !p.Reachable {
			out = append(out, n)
		}
	}
	return out
}

// surviving reports whether a replica whose primary does not answer holds a whole
// copy of slots: one of a primary that owned none is a copy of nothing.
func (m *model) surviving(n Node) bool {
	v := m.view(n)
	return v.Replication.HasCopy() && !m.View.Owners[v.PrimaryID].Empty()
}

// olderCopy returns a replica that never was in sync with the primary that was
// lost, but holds keys from before. Nobody but the user may decide that they are
// worth nothing.
func (m *model) olderCopy(shard int32) (Node, bool) {
	for _, n := range m.orphans(shard) {
		if !m.surviving(n) && m.view(n).Keys > 0 {
			return n, true
		}
	}
	return Node{}, false
}

// dropHollow deletes replicas that hold no copy and whose primary never returns:
// they can neither be promoted nor forget it, and stand in the way of a new one.
func dropHollow(m *model) ([]Action, string) {
	var actions []Action
	for shard := range m.shardCount() {
		_, served := m.owner(shard)
		if served {
			continue // they are told to follow the owner
		}
		owned := m.belonging(shard)
		for _, n := range m.orphans(shard) {
			gone := m.buried(m.view(n).PrimaryID)
			if !m.Creating && !owned.Empty() {
				gone = !owned.Intersect(m.lost).Empty()
			}
			if !gone || m.surviving(n) || m.view(n).Keys > 0 && !m.LossAccepted && !m.Creating {
				continue
			}
			actions = append(actions, Action{
				Kind: DeleteNode, Node: n.Name, Position: n.Position,
				Reason: fmt.Sprintf("node %s follows a primary that is gone and holds no copy", n.Name),
			})
		}
	}
	return actions, ""
}

// dropMisplaced deletes a node of a shard that has neither slots nor a primary, when
// all that it has are replicas of another shard: a primary that gives its last slots
// to an empty node may take itself for its replica, and its own replicas with it.
func dropMisplaced(m *model) ([]Action, string) {
	for shard := range m.Target.Shards {
		if _, ok := m.designated(shard); ok || !m.belonging(shard).Empty() {
			continue
		}
		for _, n := range m.live() {
			v := m.view(n)
			if n.Position.Shard != shard || v == nil || !v.Reachable || v.Role != topology.RoleReplica {
				continue
			}
			if p, ok := m.View.ByID(v.PrimaryID); ok && p.Reachable && m.byName[p.Node].Position.Shard != shard {
				return []Action{{
					Kind: DeleteNode, Node: n.Name, Position: n.Position,
					Reason: fmt.Sprintf("node %s of shard %d follows %s of another shard, and no node can be its primary", n.Name, shard, p.Node),
				}}, ""
			}
		}
	}
	return nil, ""
}

// buried reports whether a member is known to run no more.
func (m *model) buried(id string) bool {
	if n, known := m.byNodeID(id); known {
		return n.Proven()
	}
	return !m.View.Alive(id)
}

// belonging returns the slots of a shard: those that its nodes own by the word of
// the servers, dead or alive, and those that were recorded, unless a node of
// another shard owns them by now.
func (m *model) belonging(shard int32) slots.Set {
	var owned, elsewhere slots.Set
	for _, n := range m.nodes {
		switch set := m.View.Owners[n.NodeID]; {
		case n.NodeID == "" || set.Empty():
		case n.Position.Shard == shard:
			owned = owned.Union(set)
		default:
			elsewhere = elsewhere.Union(set)
		}
	}
	return owned.Union(m.Recorded[shard].Minus(elsewhere))
}

// shardCount is one more than the highest shard that is wished, has nodes or had
// slots.
func (m *model) shardCount() int32 {
	count := m.Target.Shards
	for shard := range m.Recorded {
		count = max(count, shard+1)
	}
	for _, n := range m.nodes {
		count = max(count, n.Position.Shard+1)
	}
	return count
}

// unserved returns the slots that no node that answers has, by its own word or by
// newer word of another. While slots change hands source and target may both deny
// them, for they were not asked at the same moment; then the source knows the target
// with a higher config epoch than it had itself when it was asked.
func (m *model) unserved() slots.Set { return m.free }

func (m *model) withoutServer() slots.Set {
	free := slots.All()
	for _, viewer := range m.reachable() {
		for id, row := range m.view(viewer).Knows {
			v, ok := m.View.ByID(id)
			if ok && v.Reachable && !row.Slots.Empty() && (row.Myself || row.ConfigEpoch > v.ConfigEpoch) {
				free = free.Minus(row.Slots)
			}
		}
	}
	return free
}

// unowned returns the slots without an owner that answers, those that are changing
// hands among them.
func (m *model) unowned() slots.Set {
	free := slots.All()
	for id, owned := range m.View.Owners {
		if v, ok := m.View.ByID(id); ok && v.Reachable {
			free = free.Minus(owned)
		}
	}
	return free
}

// Records returns the slots of each shard as they are to be written down, so that
// it is known later what was lost: those that its nodes own, also by a move that
// nobody has written down yet and by nodes that are dead or out of reach, and those
// that were recorded before and have no other owner.
func Records(s State) map[int32]slots.Set {
	m := newModel(s)
	out := map[int32]slots.Set{}
	for shard := range m.shardCount() {
		if set := m.belonging(shard); !set.Empty() {
			out[shard] = set
		}
	}
	return out
}

// AwaitedCopies says, for each shard without a copy that answers, which node is
// waited for because it may still have the data.
func AwaitedCopies(s State) []string {
	m := newModel(s)
	var out []string
	for shard := range m.shardCount() {
		if gone, waiting := m.lostSlots(shard); !gone.Empty() && waiting != "" {
			out = append(out, waiting)
		}
	}
	return out
}

// replaceLost gives the slots of a shard that has no copy left to a new empty
// primary, or to the one that the shard has; those of a shard that is to go to the
// first that stays. Its data is gone, so this happens only
// once nobody can still have it, or the user has accepted the loss.
func replaceLost(m *model) ([]Action, string) {
	if m.Creating || m.lost.Empty() {
		return nil, ""
	}
	var actions []Action
	free := m.View.UnassignedSlots().Intersect(m.lost)
	for shard := range m.shardCount() {
		lost := m.belonging(shard).Intersect(free)
		n, ok := m.vessel(shard)
		if !ok || lost.Empty() {
			continue
		}
		if n.Lifecycle != v1alpha1.LifecycleActive {
			// Else nobody knows what it holds if it is cut off right afterwards.
			return []Action{{
				Kind: Activate, Node: n.Name, Position: n.Position,
				Reason: fmt.Sprintf("node %s is to take slots %s, which nobody has", n.Name, lost),
			}}, ""
		}
		actions = append(actions, Action{
			Kind: ReplaceLost, Node: n.Name, Position: n.Position, Slots: lost,
			Reason: fmt.Sprintf("no copy of shard %d is left: node %s takes slots %s without data", shard, n.Name, lost),
		})
	}
	return actions, ""
}

// vessel returns the primary that can take lost slots of a shard: the one that owns
// what is left of it, else an empty one; for a shard that is to go, the first owner
// in one that stays.
func (m *model) vessel(shard int32) (Node, bool) {
	if shard >= m.Target.Shards {
		for heir := range m.Target.Shards {
			if n, ok := m.owner(heir); ok {
				return n, true
			}
		}
		return Node{}, false
	}
	if n, ok := m.owner(shard); ok {
		return n, true
	}
	candidates := m.live()
	if n, ok := m.designated(shard); ok {
		candidates = append(candidates, n) // it may be surplus by now, but those that stay follow it
	}
	for _, n := range candidates {
		v := m.view(n)
		if n.Position.Shard == shard && v != nil && v.Reachable && v.Role == topology.RolePrimary && v.Keys == 0 {
			return n, true
		}
	}
	return Node{}, false
}

// hungFor is how long a node may be silent before it is replaced. A probe of its
// port passes on a server that hangs, so nobody else would end it.
const hungFor = time.Minute

// dropHung deletes a node that has not answered for long and that the others call
// failed, once nothing depends on it: its slots have another owner, or their loss
// was accepted. A manager that most nodes don't answer is cut off itself, and
// deletes none.
func dropHung(m *model) ([]Action, string) {
	var staying, answering int
	for _, n := range m.nodes {
		if n.Pod == PodRunning && !n.Dead() && n.Lifecycle != v1alpha1.LifecycleLeaving {
			staying++
		}
	}
	answering = len(m.reachable())
	if 2*answering <= staying && !m.LossAccepted {
		return nil, ""
	}
	for _, n := range m.nodes {
		if n.Pod == PodRunning && !n.Dead() && n.Silent >= hungFor && m.abandoned(n) {
			return []Action{{
				Kind: DeleteNode, Node: n.Name, Position: n.Position,
				Reason: fmt.Sprintf("node %s has not answered for %s and the others call it failed", n.Name, hungFor),
			}}, ""
		}
	}
	return nil, ""
}

// abandoned reports whether a node that does not answer is missed by nobody: most
// others suspect it, or don't know it, and nothing depends on it.
func (m *model) abandoned(n Node) bool {
	v := m.view(n)
	if v == nil || v.Reachable {
		return false
	}
	knowing := 0
	for _, viewer := range m.reachable() {
		if _, knows := m.view(viewer).Knows[n.NodeID]; knows {
			knowing++
		}
	}
	// Without a majority of voters nobody turns a suspicion into a failure.
	if against := len(v.FailedBy) + len(v.SuspectedBy); knowing > 0 && 2*against <= knowing {
		return false
	}
	if m.Creating {
		return true // what it owns is handed out again
	}
	if left := m.View.Owners[n.NodeID].Minus(m.lost); n.NodeID != "" && !left.Empty() {
		return false
	}
	if n.Lifecycle == v1alpha1.LifecycleJoining && !n.InSync {
		return true // it never had a copy
	}
	_, served := m.owner(n.Position.Shard)
	return served || m.LossAccepted || m.belonging(n.Position.Shard).Empty()
}
