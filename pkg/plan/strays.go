package plan

import (
	"fmt"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// dropStrays deletes nodes that another cluster has drawn in before this one could: a
// new pod has the address of a dead one of the other cluster, whose servers still
// try it, and a server follows whoever meets it. Once such a node is introduced here,
// gossip makes one cluster of the two; and if it were told to forget the others, it
// would pass that on, and they would forget each other.
func dropStrays(m *model) ([]Action, string) {
	ours := map[string]bool{}
	for _, n := range m.nodes {
		ours[n.NodeID] = true
		if v := m.view(n); v != nil {
			ours[v.ID] = true
		}
		if !n.Dead() {
			ours[n.PodIP] = true
		}
	}
	var actions []Action
	for _, reply := range m.answers {
		n := m.byName[reply.Node]
		self, ok := reply.Self()
		if n.Lifecycle != v1alpha1.LifecycleJoining || reply.Err != nil || !ok || !self.Slots.Empty() {
			continue
		}
		if stranger, drawn := drawnIn(reply.Members, ours); drawn {
			actions = append(actions, Action{
				Kind: DeleteNode, Node: n.Name, Position: n.Position,
				Reason: fmt.Sprintf("node %s knows %s at %s, which is of another cluster, and nobody of this one", n.Name, stranger.ID, stranger.IP),
			})
		}
	}
	return actions, ""
}

// drawnIn returns a member that is none of ours, if the table holds such members and
// none of ours. One that is just being met counts: its address tells whose it is.
func drawnIn(table []topology.Member, ours map[string]bool) (stranger topology.Member, drawn bool) {
	for _, row := range table {
		switch {
		case row.Myself || row.NoAddr || row.IP == "":
		case ours[row.ID] || ours[row.IP]:
			return topology.Member{}, false
		default:
			stranger, drawn = row, true
		}
	}
	return stranger, drawn
}
