package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// host is what matters of a Kubernetes node.
type host struct {
	gone  bool
	ready bool
	zone  string
}

// settled is how long a Kubernetes node that is at work takes at most to end the
// containers of a pod that was deleted by force.
const settled = 30 * time.Second

// hosts reads the Kubernetes nodes that the cluster's pods run or ran on.
func (r *Reconciler) hosts(ctx context.Context, o *observation) (map[string]host, error) {
	out := map[string]host{}
	for i := range o.nodes {
		name := o.hostName(&o.nodes[i])
		if _, known := out[name]; known || name == "" {
			continue
		}
		var node corev1.Node
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &node)
		switch {
		case apierrors.IsNotFound(err):
			out[name] = host{gone: true}
		case err != nil:
			return nil, fmt.Errorf("read Kubernetes node %s: %w", name, err)
		default:
			out[name] = host{ready: hostReady(&node), zone: node.Labels[corev1.LabelTopologyZone]}
		}
	}
	return out, nil
}

func hostReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// hostName is where a node's pod runs, or ran when it was last seen.
func (o *observation) hostName(n *v1alpha1.ValkeyNode) string {
	if pod := o.pods[n.Name]; pod != nil && pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	return n.Status.Host
}

// hostGone reports whether nothing can run any more of a node whose pod is gone:
// its Kubernetes node is gone too, or that one is at work and had time to notice.
func (h host) hostGone(name string, silent time.Duration) bool {
	return name == "" || h.gone || h.ready && silent >= settled
}
