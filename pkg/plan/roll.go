package plan

import (
	"fmt"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// roll replaces outdated nodes: one shard at a time, replicas before the primary,
// each replacement joined and in sync before anything goes, and one failover a
// shard. It comes after everything else, so it goes on only while the whole
// cluster is well; a replacement that does not come up stops it at the first pod.
func roll(m *model) ([]Action, string) {
	if m.Creating {
		return nil, "" // first it becomes what was wished at the beginning
	}
	for shard := range m.Target.Shards {
		var primary Node
		for _, n := range m.live() {
			if n.Position.Shard != shard || n.Outdated == "" {
				continue
			}
			if m.view(n).Role == topology.RolePrimary {
				primary = n
				continue
			}
			return m.replace(n)
		}
		if primary.Name != "" {
			return m.rollPrimary(primary)
		}
	}
	return nil, ""
}

// replace brings in the successor of a replica, or lets the replica go once the
// successor is in place.
func (m *model) replace(n Node) ([]Action, string) {
	if m.succeeded(n) {
		if moving := m.portMoves(n); moving != "" {
			return nil, moving
		}
		return []Action{{
			Kind: Leave, Node: n.Name, Position: n.Position,
			Reason: fmt.Sprintf("node %s is outdated (%s) and its successor is in sync", n.Name, n.Outdated),
		}}, ""
	}
	return m.surge(n)
}

// surge creates a node beside the one that it is to follow.
func (m *model) surge(n Node) ([]Action, string) {
	if hold, ok := m.Holds[n.Position]; ok && hold.Remaining > 0 {
		return nil, hold.Reason
	}
	a := m.createNode(n.Position, map[string]bool{})
	a.JoinType, a.Zone = v1alpha1.JoinReplica, n.Zone
	if a.Predecessor == "" {
		a.Predecessor = n.Name
		a.Node = m.freeName(n.Position, n.Name, map[string]bool{})
	}
	a.Reason = fmt.Sprintf("node %s is outdated (%s)", n.Name, n.Outdated)
	return []Action{a}, ""
}

// rollPrimary hands a shard over from its outdated primary, which goes as a
// replica afterwards. Without replicas a successor joins as one first.
func (m *model) rollPrimary(n Node) ([]Action, string) {
	if m.Target.ReplicasPerShard == 0 {
		if !m.succeeded(n) {
			return m.surge(n)
		}
	}
	if m.askedInVain(n.Position.Shard) {
		return nil, fmt.Sprintf("the failover of shard %d is under way", n.Position.Shard)
	}
	replica, ok := m.best(m.view(n).ID, true)
	if !ok || replica.Outdated != "" {
		return nil, fmt.Sprintf("primary %s is outdated (%s), but shard %d has no replica in sync that is not", n.Name, n.Outdated, n.Position.Shard)
	}
	if why := m.outOfReach(replica); why != "" && replica.Position != n.Position {
		return nil, fmt.Sprintf("primary %s is outdated (%s), but %s", n.Name, n.Outdated, why)
	}
	return []Action{{
		Kind: Failover, Node: replica.Name, Position: replica.Position, Target: n.Name, Mode: Graceful,
		Reason: fmt.Sprintf("primary %s is outdated (%s), replica %s takes over shard %d", n.Name, n.Outdated, replica.Name, n.Position.Shard),
	}}, ""
}

// succeeded reports whether an up-to-date Active node has the position of an
// outdated one.
func (m *model) succeeded(n Node) bool {
	return slices.ContainsFunc(m.live(), func(other Node) bool {
		return other.Position == n.Position && other.Name != n.Name && other.Outdated == "" && other.Lifecycle == v1alpha1.LifecycleActive
	})
}

// dropObsolete takes back a replacement that has not joined and that the wish has
// left behind: at once while it does not run, for it may never do, else only while
// the node that it was to follow still serves. A roll to a bad image is reverted so.
func dropObsolete(m *model) ([]Action, string) {
	var actions []Action
	for _, n := range m.nodes {
		if n.Lifecycle != v1alpha1.LifecycleJoining || n.Outdated == "" {
			continue
		}
		if n.Pod == PodNone || n.Pod == PodPending || m.served(n) {
			actions = append(actions, Action{
				Kind: DeleteNode, Node: n.Name, Position: n.Position,
				Reason: fmt.Sprintf("node %s has not joined and is outdated (%s)", n.Name, n.Outdated),
			})
		}
	}
	return actions, ""
}

// served reports whether another living node has a joining node's position, and the
// joining one has become nothing that is needed.
func (m *model) served(n Node) bool {
	if v := m.view(n); v == nil || !v.Reachable || !m.View.Owners[n.NodeID].Empty() || !v.Slots.Empty() {
		return false
	}
	for _, other := range m.live() {
		if other.Position == n.Position && other.Name != n.Name && other.Lifecycle == v1alpha1.LifecycleActive {
			return true
		}
	}
	return false
}
