package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// inSync decides the readiness gate of a node: true for a primary that owns slots
// and for a replica whose first sync is over, false while a full sync runs or the
// link is down although the primary answers. It is never cleared because the
// primary died: then it marks the copies that survived. Unknown leaves it as is.
func inSync(o *observation, name string) corev1.ConditionStatus {
	v, ok := o.view.Nodes[name]
	if !ok || !v.Reachable {
		return corev1.ConditionUnknown
	}
	switch v.Role {
	case topology.RolePrimary:
		if v.Slots.Empty() {
			return corev1.ConditionFalse
		}
		return corev1.ConditionTrue
	case topology.RoleReplica:
		if v.Replication.InSync() {
			return corev1.ConditionTrue
		}
		if v.Replication.SyncInProgress {
			return corev1.ConditionFalse
		}
		if p, ok := o.view.ByID(v.PrimaryID); ok && p.Reachable {
			return corev1.ConditionFalse
		}
	}
	return corev1.ConditionUnknown
}
