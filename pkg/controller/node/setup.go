package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// workers is how many pods are made at once: all those of a new cluster.
const workers = 8

// SetupWithManager registers the controller with its watches.
func SetupWithManager(mgr ctrl.Manager, options Options) error {
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(v1alpha1.ManagedBy),
		Options: options, now: time.Now,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("node").
		For(&v1alpha1.ValkeyNode{}).
		Owns(&corev1.Pod{}, builder.WithPredicates(addressChanged())).
		Watches(&v1alpha1.ValkeyCluster{}, handler.EnqueueRequestsFromMapFunc(r.waitingNodes),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// addressChanged lets pass a pod's coming and going and its address, which is all
// that a node notes of it.
func addressChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, also := e.ObjectNew.(*corev1.Pod)
		return ok && also && before.Status.PodIP != after.Status.PodIP
	}}
}

// waitingNodes are the nodes of a cluster that have no pod yet: they may have
// waited for it to be resumed.
func (r *Reconciler) waitingNodes(ctx context.Context, cluster client.Object) []reconcile.Request {
	var nodes v1alpha1.ValkeyNodeList
	if err := r.Client.List(ctx, &nodes, client.InNamespace(cluster.GetNamespace()),
		client.MatchingLabels{v1alpha1.LabelInstance: cluster.GetName()}); err != nil {
		log.FromContext(ctx).Error(err, "list nodes of a changed cluster")
		return nil
	}
	var requests []reconcile.Request
	for i := range nodes.Items {
		if awaitsPod(&nodes.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&nodes.Items[i])})
		}
	}
	return requests
}
