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
	gone bool
	// ready since then; unset while it is not.
	readySince time.Time
	zone       string
}

const (
	// settled is how long after the end of a pod object its host has to be called
	// ready for it to be sure that the containers have ended: the condition may be
	// that of a host that was lost forty seconds ago, and a kubelet takes its time.
	settled = 90 * time.Second
	// cleaning is how long a host that has come back takes at most to end what it
	// should not run any more.
	cleaning = 30 * time.Second
)

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
			out[name] = host{readySince: readySince(&node), zone: node.Labels[corev1.LabelTopologyZone]}
		}
	}
	return out, nil
}

// readySince is when a Kubernetes node became ready, zero while it is not.
func readySince(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// hostName is where a node's pod runs, or ran when it was last seen.
func (o *observation) hostName(n *v1alpha1.ValkeyNode) string {
	if pod := o.pods[n.Name]; pod != nil && pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	return n.Status.Host
}

// hostGone reports whether nothing can run any more of a node that has no pod, and
// has had none for so long: its Kubernetes node is gone too, or that one is at work
// and had the time to end it.
func (h host) hostGone(name string, without time.Duration, now time.Time) bool {
	ready := !h.readySince.IsZero() && now.Sub(h.readySince) >= cleaning
	return name == "" || h.gone || ready && without >= settled
}
