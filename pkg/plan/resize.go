package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// rebalance moves slots between the shards until those that stay own all of them
// evenly and those that go own none, with as few slots moved as possible.
func rebalance(m *model) ([]Action, string) {
	if missing := m.unowned(); !missing.Empty() {
		if id, foreign := m.stranger(missing); foreign {
			return nil, fmt.Sprintf("member %s belongs to no node of the cluster, but owns slots %s: its node was deleted, or it is of another cluster; no slots are moved",
				id, m.View.Owners[id].Intersect(missing))
		}
		return nil, fmt.Sprintf("slots %s have no owner that answers; no slots are moved", missing)
	}
	moves, waiting := m.moves()
	if waiting != "" {
		return nil, waiting
	}
	giving, taking, underWay := m.migrating()
	var actions []Action
	var stalled, held string // why some moves wait; others go on
	for _, move := range moves {
		from, to := move.from, move.to
		if hold := m.Stalled[from.Name]; hold.Remaining > 0 {
			if stalled == "" {
				stalled = fmt.Sprintf("%d slots can't move from shard %d to shard %d: %s", move.slots.Len(), from.Position.Shard, to.Position.Shard, hold.Reason)
			}
			continue
		}
		if v := m.view(to); v.State != "ok" {
			return nil, fmt.Sprintf("node %s calls the cluster %q; no slots are moved to it", to.Name, v.State)
		}
		if why := m.unexposed(to.Position.Shard); why != "" {
			held = cmp.Or(held, why)
			continue
		}
		if source, target := m.view(from).ID, m.view(to).ID; giving[source] || taking[source] || giving[target] {
			continue // a server that is source and target at once may crash
		}
		part := move.slots
		if why := m.Unrouted[to.Position.Shard]; why != "" {
			empty := m.view(to).Slots.Empty()
			held = cmp.Or(held, closed(to, why, empty))
			if !empty || taking[m.view(to).ID] {
				continue
			}
			part = part.First()
			taking[m.view(to).ID] = true
		}
		actions = append(actions, Action{
			Kind: MoveSlots, Node: from.Name, Target: to.Name,
			TargetID: m.view(to).ID, Slots: part, Jobs: m.jobs(from, part),
			Reason: fmt.Sprintf("%d slots move from shard %d to shard %d", part.Len(), from.Position.Shard, to.Position.Shard),
		})
	}
	switch {
	case len(actions) > 0:
		return actions, ""
	case stalled != "":
		return nil, stalled
	}
	return nil, cmp.Or(held, underWay)
}

// closed says why a node that nobody answers for outside is given no more slots.
func closed(to Node, why string, empty bool) string {
	follow := "no more slots are moved to it until they can"
	if empty {
		follow = "its first slot opens the way, the others follow"
	}
	return fmt.Sprintf("clients outside can't reach shard %d yet: %s; %s", to.Position.Shard, why, follow)
}

// Bounds of a migration. When one ends, its source serves nobody until it has deleted
// what it gave away, so that fewer keys in each make shorter pauses; on the other hand
// each makes a copy of the source's process.
const (
	keysPerJob = 4096
	mostJobs   = 32
)

// jobs is in how many migrations slots move away from a node.
func (m *model) jobs(from Node, moved slots.Set) int {
	v := m.view(from)
	owned := max(v.Slots.Len(), 1)
	keys := float64(v.Keys) * float64(moved.Len()) / float64(owned)
	return min(max(int(math.Ceil(keys/keysPerJob)), 1), mostJobs)
}

// move is a set of slots that goes from one node to another.
type move struct {
	from, to Node
	slots    slots.Set
}

// moves returns what has to move. First every shard gets one owner: a primary that
// was replaced while nobody could tell it may have kept slots that it had just taken.
func (m *model) moves() ([]move, string) {
	var out []move
	for _, n := range m.reachable() {
		v := m.view(n)
		if owner, ok := m.owner(n.Position.Shard); ok && owner.Name != n.Name && v.Role == topology.RolePrimary && !v.Slots.Empty() {
			out = append(out, move{from: n, to: owner, slots: v.Slots})
		}
	}
	if len(out) > 0 {
		return out, ""
	}
	owned, owners := m.shards()
	for _, step := range slots.Moves(owned, int(m.Target.Shards)) {
		from, to := owners[step.From], owners[step.To]
		if from.Name == "" || to.Name == "" {
			return nil, fmt.Sprintf("shard %d has no primary that answers; no slots are moved", step.To)
		}
		out = append(out, move{from: from, to: to, slots: step.Slots})
	}
	return out, ""
}

// migrating returns the IDs of the servers that give and that take slots right
// now, and says what is on its way. Nobody may leave before it has arrived.
func (m *model) migrating() (giving, taking map[string]bool, underWay string) {
	giving, taking = map[string]bool{}, map[string]bool{}
	for _, reply := range m.answers {
		if self, ok := reply.Self(); !ok || self.Role != topology.RolePrimary {
			continue // it repeats what its primary tells, without the other end
		}
		var moving slots.Set
		for _, job := range reply.Migrations {
			direction := "to"
			switch {
			case job.Done():
				continue
			case job.Export:
				direction = "from"
				giving[reply.ID], taking[job.TargetID] = true, true
			default:
				giving[job.SourceID], taking[reply.ID] = true, true
			}
			moving = moving.Union(job.Slots)
			underWay = fmt.Sprintf("%d slots are on their way %s node %s", moving.Len(), direction, reply.Node)
		}
	}
	return giving, taking, underWay
}

// shards returns what each shard owns, up to the highest index there is, and its
// primary.
func (m *model) shards() ([]slots.Set, []Node) {
	n := m.shardCount()
	owned, owners := make([]slots.Set, n), make([]Node, n)
	for shard := range n {
		if node, ok := m.owner(shard); ok {
			owned[shard], owners[shard] = m.view(node).Slots, node
		} else if node, ok := m.designated(shard); ok && m.view(node) != nil && m.view(node).Reachable {
			owners[shard] = node
		}
	}
	return owned, owners
}

// recall takes back a node that was to leave and that has become the only one to
// have some slots: a primary that was told to stop may have chosen it as its heir,
// or died when it was the last that followed.
func recall(m *model) ([]Action, string) {
	var actions []Action
	unserved := m.unserved()
	for _, reply := range m.Replies {
		n, known := m.byName[reply.Node]
		self, ok := reply.Self()
		if !known || !ok || reply.Err != nil || n.Dead() || n.Lifecycle != v1alpha1.LifecycleLeaving {
			continue
		}
		owned := self.Slots
		if self.Role == topology.RoleReplica {
			if !reply.Replication.HasCopy() || m.mayServe(self.PrimaryID) || slices.ContainsFunc(m.orphans(n.Position.Shard), m.surviving) {
				continue
			}
			owned = slotsOf(reply, self.PrimaryID)
		}
		if last := owned.Intersect(unserved); !last.Empty() {
			actions = append(actions, Action{
				Kind: Activate, Node: n.Name, Position: n.Position,
				Reason: fmt.Sprintf("node %s was to leave, but is the only one that has slots %s", n.Name, last),
			})
		}
	}
	slices.SortFunc(actions, func(a, b Action) int { return cmp.Compare(a.Node, b.Node) })
	return actions, ""
}

// mayServe reports whether a member was not silent for long enough to be given up.
func (m *model) mayServe(id string) bool {
	n, known := m.byNodeID(id)
	return known && !n.Dead() && n.Silent < nodeTimeout
}

// slotsOf returns the slots of a member in the table of a node.
func slotsOf(reply topology.Reply, id string) slots.Set {
	for _, row := range reply.Members {
		if row.ID == id {
			return row.Slots
		}
	}
	return slots.Set{}
}

// retireSurplus takes out the nodes that the target has no place for, or that a
// roll has replaced: first a
// primary among them hands its slots over, then the node is marked Leaving,
// forgotten by all others and deleted.
func retireSurplus(m *model) ([]Action, string) {
	if m.Creating {
		return nil, ""
	}
	var leave, remove []Action
	for _, n := range m.nodes {
		leaving := n.Lifecycle == v1alpha1.LifecycleLeaving
		if m.wished(n.Position) && !leaving || n.Dead() {
			continue
		}
		if v := m.View.Nodes[n.Name]; v != nil && v.Reachable && !v.Slots.Empty() {
			if actions, waiting := waitForPositions(m); waiting != "" {
				return actions, waiting // one disruption at a time
			}
			return m.handOver(n)
		}
		switch {
		case !leaving:
			leave = append(leave, Action{
				Kind: Leave, Node: n.Name,
				Reason: fmt.Sprintf("node %s is more than %d shards with %d replicas need", n.Name, m.Target.Shards, m.Target.ReplicasPerShard),
			})
		case !m.listed(n.NodeID):
			remove = append(remove, Action{
				Kind: DeleteNode, Node: n.Name,
				Reason: fmt.Sprintf("node %s has left the cluster", n.Name),
			})
		}
	}
	if len(leave) > 0 {
		return leave, ""
	}
	if len(remove) > 0 {
		return remove, ""
	}
	return m.retireDouble()
}

// retireDouble takes out one of two nodes that have the same position although
// neither is outdated: a roll that was taken back may leave them.
func (m *model) retireDouble() ([]Action, string) {
	keeper := map[Position]Node{}
	for _, n := range m.live() {
		v := m.view(n)
		if n.Lifecycle != v1alpha1.LifecycleActive || n.Outdated != "" || v == nil {
			continue
		}
		kept, double := keeper[n.Position]
		if !double {
			keeper[n.Position] = n
			continue
		}
		if v.Role == topology.RolePrimary {
			n = kept
		}
		return []Action{{
			Kind: Leave, Node: n.Name, Position: n.Position,
			Reason: fmt.Sprintf("node %s is one more than its position needs", n.Name),
		}}, ""
	}
	return nil, ""
}

// handOver makes a replica that stays the primary in place of a node that goes, one
// that need not be replaced itself if there is one. Shards that go as a whole were
// drained before.
func (m *model) handOver(n Node) ([]Action, string) {
	if m.askedInVain(n.Position.Shard) {
		return nil, fmt.Sprintf("the failover of shard %d is under way", n.Position.Shard)
	}
	heirs := slices.DeleteFunc(m.live(), func(other Node) bool {
		v := m.view(other)
		return other.Position.Shard != n.Position.Shard || v == nil || !v.Reachable || v.Role != topology.RoleReplica || !v.Replication.InSync()
	})
	if len(heirs) == 0 {
		return nil, fmt.Sprintf("primary %s is to go, but shard %d has no replica in sync that stays", n.Name, n.Position.Shard)
	}
	heir := heirs[max(0, slices.IndexFunc(heirs, func(other Node) bool { return other.Outdated == "" }))]
	return []Action{{
		Kind: Failover, Node: heir.Name, Position: heir.Position, Target: n.Name, Mode: Graceful,
		Reason: fmt.Sprintf("primary %s is to go, replica %s takes over shard %d", n.Name, heir.Name, n.Position.Shard),
	}}, ""
}
