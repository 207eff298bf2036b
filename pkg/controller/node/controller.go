// Package node gives each new ValkeyNode its ConfigMap and its pod, once. A pod
// that is gone is not made again: its server's identity and data are gone too, and
// the cluster controller replaces the node.
//
// Of a node's status this package writes podIP and the condition PodCreated, and
// nothing else; the rest is the cluster controller's. Both send patches of just
// their own fields.
package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// Options are the manager's settings that concern pods.
type Options struct {
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	// DefaultZoneSpread holds for clusters that say nothing.
	DefaultZoneSpread v1alpha1.ZoneSpread
	// PlatformIDs leaves user and group ids to the platform.
	PlatformIDs bool
}

// Reconciler reconciles ValkeyNodes.
type Reconciler struct {
	// Client reads from the cache, but for Secrets, and writes.
	Client client.Client
	// Live reads from the API server, for decisions that an old cache would spoil.
	Live client.Reader
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Options of the manager.
	Options Options

	now func() time.Time
}

// Reconcile records the pod of one node, or makes it if the node never had one.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	node := &v1alpha1.ValkeyNode{}
	if err := r.Client.Get(ctx, req.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !node.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	pod := &corev1.Pod{}
	err := r.Client.Get(ctx, req.NamespacedName, pod)
	switch {
	case err == nil && metav1.IsControlledBy(pod, node):
		return ctrl.Result{}, r.recordPod(ctx, node, pod)
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, fmt.Errorf("read pod: %w", err)
	case !awaitsPod(node):
		return ctrl.Result{}, nil
	}
	return r.give(ctx, node)
}

// awaitsPod is whether a node without a pod is to get one.
func awaitsPod(node *v1alpha1.ValkeyNode) bool {
	return node.DeletionTimestamp.IsZero() && node.Spec.Lifecycle == v1alpha1.LifecycleJoining && !objects.PodWasCreated(node)
}

// give makes the node's pod, unless the API server knows better than the cache.
func (r *Reconciler) give(ctx context.Context, cached *v1alpha1.ValkeyNode) (ctrl.Result, error) {
	node, cluster, err := r.readLive(ctx, cached)
	if err != nil || node == nil {
		return ctrl.Result{}, err
	}
	pod, err := r.create(ctx, cluster, node)
	if err == nil {
		return ctrl.Result{}, r.recordPod(ctx, node, pod)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ctrl.Result{}, nil
	}
	if errors.Is(err, errGone) {
		return ctrl.Result{RequeueAfter: goneRetry}, nil
	}
	refusal, ok := refusalOf(err)
	if !ok {
		return ctrl.Result{}, err
	}
	if err := r.recordRefusal(ctx, node, refusal); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.retryIn(node)}, nil
}

// readLive reads a node and its cluster as they are now. It returns no node if
// there is nothing to do after all: a pod made for a cluster that is being deleted
// would be in the way of its deletion.
func (r *Reconciler) readLive(ctx context.Context, cached *v1alpha1.ValkeyNode) (*v1alpha1.ValkeyNode, *v1alpha1.ValkeyCluster, error) {
	cluster := &v1alpha1.ValkeyCluster{}
	key := client.ObjectKey{Namespace: cached.Namespace, Name: cached.Spec.ClusterName}
	if err := r.Live.Get(ctx, key, cluster); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if !cluster.DeletionTimestamp.IsZero() || cluster.Spec.Paused || !metav1.IsControlledBy(cached, cluster) {
		return nil, nil, nil
	}
	node := &v1alpha1.ValkeyNode{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cached), node); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if node.UID != cached.UID || !awaitsPod(node) {
		return nil, nil, nil
	}
	return node, cluster, nil
}
