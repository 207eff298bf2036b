package reach

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// InstanceOf returns the cluster of a pod. Pods belong to ValkeyNodes, so the label
// leads to the cluster and not the owner.
func InstanceOf(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[v1alpha1.LabelInstance]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

// PodStarted lets pass that a pod's server started or ended, or that the pod went.
func PodStarted() predicate.Predicate {
	runs := func(obj client.Object) bool {
		pod, ok := obj.(*corev1.Pod)
		return ok && pod.Status.PodIP != "" && slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return runs(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return runs(e.ObjectOld) != runs(e.ObjectNew) },
	}
}
