package plan

import (
	"fmt"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// misreadFor is how long a new replica may be taken for a primary. The others hear of
// its new role within a second or two.
const misreadFor = 20 * time.Second

// IsMisread reports whether a server takes a replica for the primary that it was when
// it started, with an epoch above that of the replica's own primary. When it learns
// the replica's shard before its role, it holds all that the replica says for stale
// and never learns better (Valkey 9.1: "Ignore stale message").
func IsMisread(v topology.View, name string) bool {
	n, ok := v.Nodes[name]
	if !ok || !n.Reachable || n.Role != topology.RoleReplica {
		return false
	}
	primary, ok := v.ByID(n.PrimaryID)
	if !ok || !primary.Reachable {
		return false
	}
	for _, viewer := range v.Nodes {
		if row, knows := viewer.Knows[n.ID]; knows && viewer.Reachable && viewer != n && row.Role == topology.RolePrimary && row.ConfigEpoch > primary.ConfigEpoch {
			return true
		}
	}
	return false
}

// dropMisread deletes new replicas that another server goes on taking for primaries.
// Nothing that they say can change that; their successors begin anew.
func dropMisread(m *model) ([]Action, string) {
	for _, n := range m.nodes {
		if n.Lifecycle == v1alpha1.LifecycleJoining && !n.Dead() && n.Misread >= misreadFor && IsMisread(m.View, n.Name) {
			return []Action{{
				Kind: DeleteNode, Node: n.Name, Position: n.Position,
				Reason: fmt.Sprintf("node %s is a replica, but has been taken for a primary for %s: what it says is held for stale", n.Name, n.Misread.Round(time.Second)),
			}}, ""
		}
	}
	return nil, ""
}
