package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/metrics"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
)

// workers is how many clusters are reconciled at once: one that hangs in time-outs
// must not hold up the others.
const workers = 16

// SetupWithManager registers the controller with its watches.
func SetupWithManager(mgr ctrl.Manager, to *reach.Reach, counted *metrics.Metrics) error {
	gateway, err := newGatewayAPI(mgr)
	if err != nil {
		return err
	}
	r := &Reconciler{
		gateway: gateway,
		Client:  mgr.GetClient(), Metadata: mgr.GetCache(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(v1alpha1.ManagedBy),
		Reach: to, Metrics: counted, pace: newPace(), holds: newHolds(), stalls: newStalls(), moments: newMoments(),
		immutable: newImmutable(), pruned: newPruned(),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		For(&v1alpha1.ValkeyCluster{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, lookedAt()))).
		Owns(&v1alpha1.ValkeyNode{}).
		Owns(&corev1.Service{}). // Services have no generation, and the address of a load balancer is in the status
		Owns(&corev1.ConfigMap{}).
		Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(reach.InstanceOf)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfSecret)).
		Watches(&v1alpha1.ValkeyConfig{}, handler.EnqueueRequestsFromMapFunc(r.allClusters), builder.WithPredicates(specChanged())).
		Watches(&v1alpha1.ValkeyImage{}, handler.EnqueueRequestsFromMapFunc(r.allClusters), builder.WithPredicates(specChanged())).
		Watches(&v1alpha1.ValkeyRole{}, handler.EnqueueRequestsFromMapFunc(r.allClusters), builder.WithPredicates(specChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconcile.Func(r.Reconcile))
}

func newGatewayAPI(mgr ctrl.Manager) (*gatewayAPI, error) {
	g := &gatewayAPI{}
	var err error
	if g.dynamic, err = dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return nil, fmt.Errorf("create a client for TCPRoutes: %w", err)
	}
	if g.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return nil, fmt.Errorf("create a client for discovery: %w", err)
	}
	return g, nil
}

// lookedAt lets pass what a cluster waits for before it is Active: another controller has
// looked at its nodes.
func lookedAt() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.ValkeyCluster)
		after, is := e.ObjectNew.(*v1alpha1.ValkeyCluster)
		if !ok || !is {
			return false
		}
		_, waited := unseen(before)
		_, waits := unseen(after)
		return waited && !waits
	}}
}

// specChanged lets pass what may change the resolution of a reference.
func specChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	}}
}

// clustersOfSecret returns the clusters that a Secret belongs to or that name it.
func (r *Reconciler) clustersOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(secret); owner != nil && owner.Kind == "ValkeyCluster" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: owner.Name}}}
	}
	return r.requests(ctx, func(c *v1alpha1.ValkeyCluster) bool {
		return c.Spec.TLS != nil && c.Spec.TLS.SecretRef == secret.GetName()
	}, client.InNamespace(secret.GetNamespace()))
}

// allClusters returns every cluster: which of them a part of the menu concerns is
// found out by resolving.
func (r *Reconciler) allClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx, func(*v1alpha1.ValkeyCluster) bool { return true })
}

func (r *Reconciler) requests(ctx context.Context, match func(*v1alpha1.ValkeyCluster) bool, in ...client.ListOption) []reconcile.Request {
	var clusters v1alpha1.ValkeyClusterList
	if err := r.Client.List(ctx, &clusters, in...); err != nil {
		return nil // the cache has not started: every cluster is reconciled then anyway
	}
	var out []reconcile.Request
	for i := range clusters.Items {
		if match(&clusters.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
		}
	}
	return out
}
