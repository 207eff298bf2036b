package plan

import "fmt"

// dropUnplaced deletes the nodes of a cluster in the making that an edit has left
// without a place, so that pods that will never be needed don't wait for room. A
// node that others may know already goes once the cluster is complete, like any
// surplus one.
func dropUnplaced(m *model) ([]Action, string) {
	if !m.Creating {
		return nil, ""
	}
	var actions []Action
	for _, n := range m.nodes {
		if m.wished(n.Position) || n.Terminating || m.mayBeKnown(n) {
			continue
		}
		actions = append(actions, Action{
			Kind: DeleteNode, Node: n.Name, Position: n.Position,
			Reason: fmt.Sprintf("node %s has not joined and has no place among %d shards with %d replicas", n.Name, m.Target.Shards, m.Target.ReplicasPerShard),
		})
	}
	return actions, ""
}

// mayBeKnown reports whether a node owns slots, was introduced to others, or runs
// and can't be asked.
func (m *model) mayBeKnown(n Node) bool {
	if m.listed(n.NodeID) {
		return true
	}
	v := m.view(n)
	if v == nil || !v.Reachable {
		return n.Pod == PodRunning
	}
	return len(v.Knows) > 1 || !v.Slots.Empty()
}
