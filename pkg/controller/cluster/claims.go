package cluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// claims says of nodes that join which node of another cluster had their address, if
// that one is not gone: its servers may try it still. It is read from the cache, since
// most have been there for long, and not copied, since it is only read.
func (r *Reconciler) claims(ctx context.Context, o *observation) (map[string]string, error) {
	joining := map[string]string{}
	for i := range o.nodes {
		n := &o.nodes[i]
		if pod := o.pods[n.Name]; n.Spec.Lifecycle == v1alpha1.LifecycleJoining && pod != nil && pod.Status.PodIP != "" {
			joining[pod.Status.PodIP] = n.Name
		}
	}
	if len(joining) == 0 {
		return nil, nil
	}
	var all v1alpha1.ValkeyNodeList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("look for former addresses of other clusters' nodes: %w", err)
	}
	return claimed(joining, all.Items, o.cluster), nil
}

// claimed returns, by the name of a node that joins, who else is known at its address.
// A node that has not joined its cluster yet is known to nobody.
func claimed(joining map[string]string, all []v1alpha1.ValkeyNode, cluster *v1alpha1.ValkeyCluster) map[string]string {
	out := map[string]string{}
	for i := range all {
		n := &all[i]
		other := n.Namespace != cluster.Namespace || n.Spec.ClusterName != cluster.Name
		if name, same := joining[n.Status.PodIP]; same && other && n.Spec.Lifecycle != v1alpha1.LifecycleJoining {
			out[name] = fmt.Sprintf("node %s of cluster %s in namespace %s", n.Name, n.Spec.ClusterName, n.Namespace)
		}
	}
	return out
}
