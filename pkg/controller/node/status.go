package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
)

const (
	minRetry = 2 * time.Second
	maxRetry = 30 * time.Second
	// goneRetry is when to try again what something was in the way of that is gone.
	goneRetry = 100 * time.Millisecond
)

// conflict is an object that has a name which the node needs, and another owner.
type conflict struct {
	object string
	// former is whether the owner is a former node of this name, which takes its
	// objects along when its deletion gets to them.
	former bool
}

func (c *conflict) Error() string {
	if c.former {
		return fmt.Sprintf("%s still belongs to a former node of this name: waiting until it is deleted", c.object)
	}
	return fmt.Sprintf("%s exists and does not belong to this node: delete or rename it", c.object)
}

// refusal is why a node can't have its pod for now.
type refusal struct {
	reason, message string
	// warn is whether somebody has to do something about it.
	warn bool
}

// refusalOf reads an error that will not go away by itself at once. All others are
// tried again like any failed request.
func refusalOf(err error) (refusal, bool) {
	var taken *conflict
	switch {
	case errors.As(err, &taken) && taken.former:
		return refusal{reason: v1alpha1.ReasonWaiting, message: taken.Error()}, true
	case errors.As(err, &taken):
		return refusal{reason: v1alpha1.ReasonNameConflict, message: taken.Error(), warn: true}, true
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return refusal{reason: v1alpha1.ReasonPodRejected, message: err.Error(), warn: true}, true
	}
	return refusal{}, false
}

// recordPod notes that the node has its pod, and the pod's address. The address
// of a pod that is gone stays: it says that there was one.
func (r *Reconciler) recordPod(ctx context.Context, node *v1alpha1.ValkeyNode, pod *corev1.Pod) error {
	before := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionPodCreated)
	wasRefused := before != nil && before.Status == metav1.ConditionFalse
	written, err := r.record(ctx, node, pod.Status.PodIP, metav1.Condition{
		Type: v1alpha1.ConditionPodCreated, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCreated,
		Message: fmt.Sprintf("pod %s was created", pod.Name),
	})
	if written && wasRefused {
		r.event(node, corev1.EventTypeNormal, v1alpha1.ReasonCreated, "pod %s was created", pod.Name)
	}
	return err
}

// recordRefusal notes why the node has no pod. There is one event for a reason,
// however often its message changes.
func (r *Reconciler) recordRefusal(ctx context.Context, node *v1alpha1.ValkeyNode, why refusal) error {
	before := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionPodCreated)
	known := before != nil && before.Reason == why.reason
	written, err := r.record(ctx, node, "", metav1.Condition{
		Type: v1alpha1.ConditionPodCreated, Status: metav1.ConditionFalse, Reason: why.reason, Message: why.message,
	})
	if written && !known && why.warn {
		r.event(node, corev1.EventTypeWarning, why.reason, "%s", why.message)
	}
	return err
}

func (r *Reconciler) event(node *v1alpha1.ValkeyNode, kind, reason, format string, args ...any) {
	r.Recorder.Eventf(node, nil, kind, reason, "CreatePod", "%s", reach.Note(fmt.Sprintf(format, args...)))
}

// record patches address and condition where they differ, and reports whether it
// did. A patch of conditions carries all of them, so it is made for the version
// that was read: if that is old, the newer one is on its way through the cache and
// brings the node here again.
func (r *Reconciler) record(ctx context.Context, node *v1alpha1.ValkeyNode, podIP string, condition metav1.Condition) (bool, error) {
	before := node.DeepCopy()
	condition.Message = reach.Message(condition.Message)
	condition.LastTransitionTime = metav1.NewTime(r.now())
	changed := meta.SetStatusCondition(&node.Status.Conditions, condition)
	patch := client.MergeFrom(before)
	if changed {
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if podIP != "" && podIP != node.Status.PodIP {
		node.Status.PodIP = podIP
		changed = true
	}
	if !changed {
		return false, nil
	}
	err := r.Client.Status().Patch(ctx, node, patch)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("update status of node %s: %w", node.Name, err)
	}
	return true, nil
}

// retryIn backs off by how long the pod has been refused, between two seconds and
// half a minute, without having to remember anything.
func (r *Reconciler) retryIn(node *v1alpha1.ValkeyNode) time.Duration {
	condition := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionPodCreated)
	if condition == nil {
		return minRetry
	}
	return min(max(r.now().Sub(condition.LastTransitionTime.Time)/2, minRetry), maxRetry)
}
