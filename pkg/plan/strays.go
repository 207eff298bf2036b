package plan

import (
	"fmt"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// dropStrays deletes nodes that another cluster draws in before this one can: a new
// pod has the address of a dead one of the other cluster, whose servers still try it,
// and a server follows whoever meets it. Once such a node is introduced here, gossip
// makes one cluster of the two; and if it were told to forget the others, it would
// pass that on, and they would forget each other.
func dropStrays(m *model) ([]Action, string) {
	ours := m.ours()
	var actions []Action
	for _, n := range m.nodes {
		if n.Lifecycle != v1alpha1.LifecycleJoining || n.Dead() || m.introduced(n) {
			continue
		}
		if v := m.view(n); v != nil && !v.Slots.Empty() {
			continue
		}
		why := m.drawnIn(n, ours)
		if who := m.Claimed[n.Name]; who != "" {
			why = fmt.Sprintf("has address %s, at which %s may still be tried", n.PodIP, who)
		}
		if why != "" {
			actions = append(actions, Action{
				Kind: DeleteNode, Node: n.Name, Position: n.Position,
				Reason: fmt.Sprintf("node %s %s: it could join the two clusters", n.Name, why),
			})
		}
	}
	return actions, ""
}

// introduced reports whether another node has a node in its table.
func (m *model) introduced(n Node) bool {
	v := m.view(n)
	if v == nil {
		return false
	}
	return slices.ContainsFunc(m.reachable(), func(other Node) bool {
		_, knows := m.view(other).Knows[v.ID]
		return knows && other.Name != n.Name
	})
}

// ours are the IDs and the addresses of the cluster's nodes; a dead one's address may
// be somebody else's now.
func (m *model) ours() map[string]bool {
	out := map[string]bool{}
	for _, n := range m.nodes {
		out[n.NodeID] = true
		if v := m.view(n); v != nil {
			out[v.ID] = true
		}
		if !n.Dead() {
			out[n.PodIP] = true
		}
	}
	return out
}

// drawnIn says which member of another cluster a node knows, if it knows such members
// and nobody of this one. One that is just being met counts: its address tells whose
// it is.
func (m *model) drawnIn(n Node, ours map[string]bool) (why string) {
	for _, reply := range m.answers {
		if reply.Node != n.Name || reply.Err != nil {
			continue
		}
		for _, row := range reply.Members {
			switch {
			case row.Myself || row.NoAddr || row.IP == "":
			case ours[row.ID] || ours[row.IP]:
				return ""
			default:
				why = fmt.Sprintf("knows %s at %s, which is of another cluster, and nobody of this one", row.ID, row.IP)
			}
		}
	}
	return why
}
