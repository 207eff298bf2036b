package plan

import (
	"fmt"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// mostNodes is how many nodes a shard can have. Epochs that count with it stay
// distinct when the shape is edited while some are set already.
const mostNodes = 6

// setConfigEpochs gives every node of a new cluster a config epoch of its own
// before it meets the others: nodes that meet with equal epochs raise them one
// after the other until they differ, and who owns a slot meanwhile is undefined.
// The server takes it only while it knows nobody and has none.
func setConfigEpochs(m *model) ([]Action, string) {
	if !m.Creating {
		return nil, ""
	}
	var actions []Action
	for _, n := range m.live() {
		v := m.view(n)
		if v == nil || !v.Reachable || v.ConfigEpoch != 0 || len(v.Knows) > 1 {
			continue
		}
		epoch := uint64(n.Position.Shard)*mostNodes + uint64(n.Position.Index) + 1
		actions = append(actions, Action{
			Kind: SetConfigEpoch, Node: n.Name, Epoch: epoch,
			Reason: fmt.Sprintf("node %s needs a config epoch of its own", n.Name),
		})
	}
	return actions, ""
}

// assignSlots hands out, in a new cluster, the slots that nobody owns. It is done
// before nodes are introduced, so that the first messages they exchange carry the
// slots, and for each shard as soon as one of its nodes answers: a primary that
// knows of no slots two seconds after its start takes itself for cut off, and calls
// the cluster fail for five seconds more. After creation an uncovered slot is never
// simply assigned to an empty node: that would hide the loss of its data.
func assignSlots(m *model) ([]Action, string) {
	if !m.Creating || !m.comingUp() {
		return nil, ""
	}
	unassigned := m.View.UnassignedSlots()
	var actions []Action
	for shard := range m.Target.Shards {
		missing := m.desired[shard].Intersect(unassigned)
		if missing.Empty() {
			continue
		}
		n, ok := m.primary(shard)
		if !ok || !m.heard(shard) || m.view(n) == nil || !m.view(n).Reachable {
			continue
		}
		if v := m.view(n); v.Role != topology.RolePrimary {
			return nil, fmt.Sprintf("node %s is to own slots %s, but is a replica", n.Name, missing)
		}
		actions = append(actions, Action{
			Kind: AssignSlots, Node: n.Name, Slots: missing,
			Reason: fmt.Sprintf("slots %s of shard %d have no owner", missing, shard),
		})
	}
	return actions, ""
}

// comingUp reports whether every node of a new cluster answers or is about to: with
// the first slot the shape is settled until the cluster is complete, so none is
// assigned while something is in the way that an edit might have to get around.
func (m *model) comingUp() bool {
	for _, n := range m.live() {
		if v := m.view(n); (v == nil || !v.Reachable) && n.Detail != "" {
			return false
		}
	}
	return true
}

// heard reports whether every node of a shard that runs has answered: one that has
// not may own slots.
func (m *model) heard(shard int32) bool {
	for _, n := range m.live() {
		if v := m.view(n); n.Position.Shard == shard && n.Pod == PodRunning && (v == nil || !v.Reachable) {
			return false
		}
	}
	return true
}

// replicate attaches every node without slots to the owner of its shard. It never
// touches a node that owns slots, and waits until the node knows the owner: the
// server refuses an unknown one.
func replicate(m *model) ([]Action, string) {
	var actions []Action
	var waiting string
	unseen := false
	for _, n := range m.live() {
		v := m.view(n)
		if v == nil || !v.Reachable || !v.Slots.Empty() {
			continue
		}
		owner, ok := m.primary(n.Position.Shard)
		if !ok || owner.Name == n.Name || m.view(owner) == nil || !m.view(owner).Reachable {
			continue
		}
		id := m.view(owner).ID
		if m.lastOf(n) {
			continue // following an empty primary it would lose what it has
		}
		if v.Role == topology.RoleReplica && (v.PrimaryID == id || m.follows(v)) {
			continue
		}
		if v.Role == topology.RolePrimary && v.Keys > 0 {
			waiting = fmt.Sprintf("node %s owns no slot but holds %d keys; it is not made a replica", n.Name, v.Keys)
			continue
		}
		if why := m.nameUnseen(n); why != "" {
			waiting, unseen = why, true
			continue
		}
		if _, knows := v.Knows[id]; !knows {
			waiting = fmt.Sprintf("node %s does not know %s, the primary of shard %d, yet", n.Name, owner.Name, owner.Position.Shard)
			continue
		}
		actions = append(actions, Action{
			Kind: Replicate, Node: n.Name, Target: owner.Name, TargetID: id,
			Reason: fmt.Sprintf("node %s is to follow %s, the primary of shard %d", n.Name, owner.Name, owner.Position.Shard),
		})
	}
	if len(actions) == 0 && (m.Creating || unseen) {
		return nil, waiting
	}
	return actions, ""
}

// lastOf reports whether a replica without a primary holds data of a shard that
// nobody serves: it is to be promoted, or the user decides.
func (m *model) lastOf(n Node) bool {
	if _, served := m.owner(n.Position.Shard); served {
		return false
	}
	return slices.ContainsFunc(m.orphans(n.Position.Shard), func(orphan Node) bool {
		return orphan.Name == n.Name && (m.surviving(n) || m.view(n).Keys > 0)
	})
}

// follows reports whether a replica follows some living primary of its own shard;
// the servers settle by themselves who of several is the one. A replica of a replica
// has missed a failover.
func (m *model) follows(v *topology.NodeView) bool {
	p, ok := m.View.ByID(v.PrimaryID)
	if !ok || !p.Reachable || p.Role != topology.RolePrimary {
		return false
	}
	return m.byName[p.Node].Position.Shard == m.byName[v.Node].Position.Shard
}

// waitForAgreement holds until every node is where it belongs by its own word and
// by all others', and every replica has a full copy.
func waitForAgreement(m *model) ([]Action, string) {
	for _, n := range m.live() {
		v := m.view(n)
		if v == nil || !v.Reachable {
			return nil, fmt.Sprintf("node %s does not answer%s", n.Name, detail(n))
		}
		if v.State != "ok" {
			return nil, fmt.Sprintf("node %s calls the cluster %q", n.Name, v.State)
		}
		if v.Role == topology.RoleReplica && !v.Replication.InSync() {
			return nil, fmt.Sprintf("replica %s is copying the data of shard %d", n.Name, n.Position.Shard)
		}
	}
	if missing := m.View.UncoveredSlots(); !missing.Empty() {
		return nil, fmt.Sprintf("slots %s have no owner that is alive", missing)
	}
	return nil, m.View.FirstDifference()
}

// waitForPrimaries holds until no shard is without slots.
func waitForPrimaries(m *model) ([]Action, string) {
	for shard := range m.Target.Shards {
		if _, ok := m.owner(shard); !ok {
			return nil, fmt.Sprintf("shard %d owns no slots", shard)
		}
	}
	return nil, ""
}

// waitForPositions holds until every position has a node: the next one of those
// that die before they join may have to wait.
func waitForPositions(m *model) ([]Action, string) {
	filled := map[Position]bool{}
	for _, n := range m.live() {
		filled[n.Position] = true
	}
	for shard := range m.Target.Shards {
		for index := range m.Target.ReplicasPerShard + 1 {
			p := Position{Shard: shard, Index: index}
			if filled[p] {
				continue
			}
			if hold, ok := m.Holds[p]; ok {
				return nil, hold.Reason
			}
			return nil, fmt.Sprintf("shard %d has no node %d", shard, index)
		}
	}
	return nil, ""
}

// activate marks the nodes that have found their place.
func activate(m *model) ([]Action, string) {
	var actions []Action
	for _, n := range m.live() {
		if n.Lifecycle == v1alpha1.LifecycleJoining {
			actions = append(actions, Action{
				Kind: Activate, Node: n.Name,
				Reason: fmt.Sprintf("node %s has joined shard %d", n.Name, n.Position.Shard),
			})
		}
	}
	return actions, ""
}

// retireDead deletes dead nodes whose position is filled again and that no table
// lists any more. Until then their pod stays: it says how it ended. One that was to
// replace an outdated node and died stays as long as that one does.
func retireDead(m *model) ([]Action, string) {
	filled, renewed := map[Position]bool{}, map[Position]bool{}
	for _, n := range m.live() {
		if n.Lifecycle == v1alpha1.LifecycleActive {
			filled[n.Position] = true
			renewed[n.Position] = renewed[n.Position] || n.Outdated == ""
		}
	}
	var actions []Action
	for _, n := range m.nodes {
		done := filled[n.Position]
		if n.Lifecycle == v1alpha1.LifecycleJoining && n.Outdated == "" {
			done = renewed[n.Position]
		}
		if !n.Dead() || m.wished(n.Position) && !done || m.listed(n.NodeID) {
			continue
		}
		actions = append(actions, Action{
			Kind: DeleteNode, Node: n.Name,
			Reason: fmt.Sprintf("node %s is dead and replaced", n.Name),
		})
	}
	return actions, ""
}

// listed reports whether some table still holds a member; nobody lists a node
// whose ID was never known.
func (m *model) listed(id string) bool {
	if id == "" {
		return false
	}
	for _, n := range m.reachable() {
		if _, ok := m.view(n).Knows[id]; ok {
			return true
		}
	}
	return false
}
