package tls

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
func SetupWithManager(mgr ctrl.Manager, to *reach.Reach, handshaker Handshaker) error {
	r := &Reconciler{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(v1alpha1.ManagedBy), Reach: to, Handshaker: handshaker,
		refresher: &reach.Refresher{Client: mgr.GetClient(), Annotation: v1alpha1.AnnotationRefreshTLS},
		pace:      &reach.Pace{}, now: time.Now,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("tls").
		For(&v1alpha1.ValkeyCluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&v1alpha1.ValkeyNode{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(reach.InstanceOf), builder.WithPredicates(reach.PodStarted())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfSecret)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// clustersOfSecret returns the clusters that a Secret belongs to or that name it.
func (r *Reconciler) clustersOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(secret); owner != nil && owner.Kind == "ValkeyCluster" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: owner.Name}}}
	}
	var clusters v1alpha1.ValkeyClusterList
	if err := r.Client.List(ctx, &clusters, client.InNamespace(secret.GetNamespace())); err != nil {
		return nil // the cache has not started: every cluster is looked at then anyway
	}
	var out []reconcile.Request
	for i := range clusters.Items {
		if c := &clusters.Items[i]; c.Spec.TLS != nil && c.Spec.TLS.SecretRef == secret.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		}
	}
	return out
}
