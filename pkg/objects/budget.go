package objects

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// PodDisruptionBudget lets one copy of a shard's data go at a time. It counts
// whole copies, since readiness is the in-sync gate. minAvailable is an integer:
// percentages and maxUnavailable need an owner with a scale subresource, which
// these pods don't have. A pod that isn't ready may always be evicted, or a
// broken one would hold up a drain for ever.
//
// It is nil for a shard without replicas: a budget would either protect nothing
// or block every drain.
func PodDisruptionBudget(cluster *v1alpha1.ValkeyCluster, shard, replicas int32) *policyv1.PodDisruptionBudget {
	if replicas == 0 {
		return nil
	}
	minAvailable := intstr.FromInt32(replicas)
	evictUnready := policyv1.AlwaysAllow
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: clusterMeta(cluster, PDBName(cluster.Name, shard), ShardLabels(cluster.Name, shard)),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               &minAvailable,
			Selector:                   &metav1.LabelSelector{MatchLabels: ShardSelector(cluster.Name, shard)},
			UnhealthyPodEvictionPolicy: &evictUnready,
		},
	}
}
