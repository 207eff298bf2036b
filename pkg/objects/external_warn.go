package objects

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// mostListeners is how many a Gateway can have.
const mostListeners = 64

// ExternalWarnings are what people should know of a wish before it hurts.
func ExternalWarnings(cluster *v1alpha1.ValkeyCluster) []string {
	if !ExternalEnabled(cluster) {
		return nil
	}
	external := cluster.Spec.ExternalAccess
	var warnings []string
	local := external.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	switch kind := ExternalServiceType(external); {
	case local && kind == corev1.ServiceTypeNodePort:
		warnings = append(warnings, "with externalTrafficPolicy Local a node port answers only on the machine that runs its pod, so each hostname has to lead to all machines and clients have to try again")
	case local && kind == corev1.ServiceTypeLoadBalancer && cluster.Spec.ReplicasPerShard > 0:
		warnings = append(warnings, "with externalTrafficPolicy Local a load balancer checks the health of a Service and not of each port, so it may lead to a machine that runs another node of the shard")
	}
	if external.Gateway == nil {
		return warnings
	}
	if n := cluster.Spec.Shards * (cluster.Spec.ReplicasPerShard + 1); n > mostListeners {
		warnings = append(warnings, fmt.Sprintf("the cluster needs %d listeners and a Gateway has at most %d", n, mostListeners))
	}
	if cluster.Spec.Shards > 1 {
		warnings = append(warnings, "a change of replicasPerShard gives other listener ports to every shard but the first")
	}
	return warnings
}
