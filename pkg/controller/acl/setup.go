package acl

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
)

// workers is how many clusters are looked at at once: one that hangs in time-outs
// must not hold up the others.
const workers = 8

// SetupWithManager registers the controller with its watches.
func SetupWithManager(mgr ctrl.Manager, to *reach.Reach) error {
	r := &Reconciler{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(v1alpha1.ManagedBy), Reach: to,
		refresher: &reach.Refresher{Client: mgr.GetClient(), Annotation: v1alpha1.AnnotationRefreshACL},
		pace:      &reach.Pace{}, now: time.Now, listed: map[types.NamespacedName]map[types.UID]string{},
	}
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("acl").
		For(&v1alpha1.ValkeyCluster{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&v1alpha1.ValkeyNode{}, changed).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(reach.InstanceOf), builder.WithPredicates(reach.PodStarted())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ownersOf)).
		Watches(&v1alpha1.ValkeyConfig{}, handler.EnqueueRequestsFromMapFunc(r.allClusters), changed).
		Watches(&v1alpha1.ValkeyImage{}, handler.EnqueueRequestsFromMapFunc(r.allClusters), changed).
		Watches(&v1alpha1.ValkeyRole{}, handler.EnqueueRequestsFromMapFunc(r.allClusters), changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// ownersOf returns the cluster that a Secret belongs to.
func ownersOf(_ context.Context, secret client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(secret)
	if owner == nil || owner.Kind != "ValkeyCluster" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: owner.Name}}}
}

// allClusters returns every cluster: which of them a part of the menu concerns is
// found out by resolving.
func (r *Reconciler) allClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	var clusters v1alpha1.ValkeyClusterList
	if err := r.Client.List(ctx, &clusters); err != nil {
		return nil // the cache has not started: every cluster is looked at then anyway
	}
	out := make([]reconcile.Request, 0, len(clusters.Items))
	for i := range clusters.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
	}
	return out
}
