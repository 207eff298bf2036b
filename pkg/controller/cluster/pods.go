package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// podPhase reads the phase that matters to the planner.
func podPhase(n *v1alpha1.ValkeyNode, pod *corev1.Pod) plan.PodPhase {
	return plan.PhaseOf(pod, objects.PodWasCreated(n))
}

// nodeDetail says why a pod is not running, in the words of Kubernetes.
func nodeDetail(n *v1alpha1.ValkeyNode, pod *corev1.Pod) string {
	if pod == nil {
		for _, c := range n.Status.Conditions {
			if c.Status != "True" && c.Message != "" {
				return c.Message
			}
		}
		return ""
	}
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			return terminated(t)
		}
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return joinReason(w.Reason, w.Message)
		}
	}
	if c := podCondition(pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse {
		return joinReason(c.Reason, c.Message)
	}
	return joinReason(pod.Status.Reason, pod.Status.Message)
}

func terminated(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("container ended with exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed" {
		text += ", " + t.Reason
	}
	if t.Message != "" {
		text += ": " + lastWords(t.Message)
	}
	return text
}

// lastWords returns the end of a log, where servers say why they stop. A server
// that can't read its configuration prints the line in question (>>> …) before
// the reason.
func lastWords(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	n := len(lines)
	switch {
	case n == 0:
		return ""
	case n > 1 && strings.HasPrefix(lines[n-2], ">>>"):
		return lines[n-2] + " " + lines[n-1]
	}
	return lines[n-1]
}

func joinReason(reason, message string) string {
	switch {
	case reason == "":
		return message
	case message == "":
		return reason
	}
	return reason + ": " + message
}

// gateIs reports the state of the pod's in-sync readiness gate.
func gateIs(pod *corev1.Pod, want corev1.ConditionStatus) bool {
	return podCondition(pod, v1alpha1.InSyncGate).Status == want
}

// podCondition returns a condition of a pod, one of no status if the pod hasn't it.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// isLeaving reports whether a pod was told to stop.
func isLeaving(pod *corev1.Pod) bool { return pod != nil && !pod.DeletionTimestamp.IsZero() }

// terminatingFor returns how long ago a pod was told to stop, as far as is known: it
// is not less. Its deletion time lies the grace period ahead of that, without its
// fraction of a second, so that it may have come a second later; seen is how long
// ago the manager learned of it.
func terminatingFor(pod *corev1.Pod, seen time.Duration, now time.Time) time.Duration {
	if !isLeaving(pod) {
		return 0
	}
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	return max(now.Sub(pod.DeletionTimestamp.Add(-grace))-time.Second, seen, 0)
}
