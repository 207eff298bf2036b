package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// PhaseOf reads the phase that matters from a node's pod, nil for none. A node whose
// pod was created once and that has none now is gone: pods are never made twice.
func PhaseOf(pod *corev1.Pod, created bool) PodPhase {
	switch {
	case pod == nil && created:
		return PodGone
	case pod == nil:
		return PodNone
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return PodTerminated
	}
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Terminated != nil:
			return PodTerminated
		case c.State.Running != nil && pod.Status.PodIP != "":
			return PodRunning
		}
	}
	return PodPending
}

// Creating reports whether a cluster never was complete. TargetSpec is there only
// until it is, so it also tells an Invalid cluster that never was Active from one
// that was.
func Creating(c *v1alpha1.ValkeyCluster) bool {
	return c.Status.State == "" || c.Status.State == v1alpha1.StateCreating || c.Status.TargetSpec != nil
}

// TargetOf returns the shape to work towards. While a cluster is being created and
// slots are assigned already that is the snapshot in status.targetSpec, so that an
// edit meanwhile is applied afterwards; before and after it is the spec.
func TargetOf(c *v1alpha1.ValkeyCluster, assigned bool) v1alpha1.TargetTopology {
	if t := c.Status.TargetSpec; t != nil && assigned && Creating(c) {
		return *t
	}
	return v1alpha1.TargetTopology{Shards: c.Spec.Shards, ReplicasPerShard: c.Spec.ReplicasPerShard}
}
