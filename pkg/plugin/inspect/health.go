package inspect

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

// managerSilence is how long a change may go unnoticed before it is likelier
// that no manager runs than that it is busy.
const managerSilence = 30 * time.Second

// Reasons that stand where no condition speaks for the cluster as it is now.
const (
	reasonDeleting = "Deleting"
	reasonNotSeen  = "NotSeenYet"
	reasonNoAnswer = "ManagerSilent"
	reasonNotReady = "NotReady"
)

// Health is the verdict on a cluster.
type Health struct {
	// Healthy: the manager says Ready, of the spec as it is now.
	Healthy bool
	// Reason is one word for why not.
	Reason string
	// Message is a sentence for why not.
	Message string
}

// HealthOf draws the verdict from the cluster's own status.
func HealthOf(c *v1alpha1.ValkeyCluster, now time.Time) Health {
	if c.DeletionTimestamp != nil {
		return Health{Reason: reasonDeleting, Message: "it is being deleted"}
	}
	if !observed(c) {
		if hint := ManagerHint(c, now); hint != "" {
			return Health{Reason: reasonNoAnswer, Message: hint}
		}
		return Health{Reason: reasonNotSeen, Message: fmt.Sprintf("the manager has not looked at generation %d yet", c.Generation)}
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return Health{Reason: reasonNotReady, Message: orElse(c.Status.Message, "the manager has not said yet whether it is ready")}
	}
	if ready.Status == metav1.ConditionTrue {
		return Health{Healthy: true}
	}
	return Health{Reason: orElse(reason(c, ready), reasonNotReady), Message: orElse(ready.Message, c.Status.Message)}
}

// reason is Ready's, unless that only repeats the state: then the condition that
// holds the cluster up has a better one.
func reason(c *v1alpha1.ValkeyCluster, ready *metav1.Condition) string {
	if ready.Reason != string(c.Status.State) {
		return ready.Reason
	}
	for _, kind := range []string{v1alpha1.ConditionConfigResolved, v1alpha1.ConditionProgressing} {
		if other := meta.FindStatusCondition(c.Status.Conditions, kind); other != nil && !AtRest(*other) {
			return orElse(other.Reason, ready.Reason)
		}
	}
	return ready.Reason
}

// observed is whether the status is about the spec as it is now.
func observed(c *v1alpha1.ValkeyCluster) bool {
	return c.Status.ObservedGeneration >= c.Generation && c.Status.ObservedGeneration > 0
}

// ManagerHint says that no manager seems to be at work, and how to check, when
// the last change of the spec has gone unnoticed for long; otherwise it is empty.
func ManagerHint(c *v1alpha1.ValkeyCluster, now time.Time) string {
	if observed(c) || c.DeletionTimestamp != nil {
		return ""
	}
	if last := changed(c); last.IsZero() || now.Sub(last) <= managerSilence {
		return ""
	}
	return fmt.Sprintf("no manager seems to be at work: for over %s none has looked at generation %d; check with: kubectl get deployment %s -n %s",
		managerSilence, c.Generation, kube.ManagerDeployment, kube.ManagerNamespace)
}

// changed is when the spec was written last, as far as the object tells. kubectl scale
// writes it by a subresource; the manager writes the status.
func changed(c *v1alpha1.ValkeyCluster) time.Time {
	last := c.CreationTimestamp.Time
	for _, f := range c.ManagedFields {
		if f.Subresource != "status" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// AtRest is whether a condition says that all is well, so that nobody needs to
// read it.
func AtRest(c metav1.Condition) bool {
	switch c.Type {
	case v1alpha1.ConditionProgressing:
		// It is also false when something stops the manager.
		return c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonComplete
	case v1alpha1.ConditionDegraded, v1alpha1.ConditionDataLoss:
		return c.Status == metav1.ConditionFalse
	}
	// What was not asked for is not amiss.
	if c.Reason == v1alpha1.ReasonTLSDisabled || c.Reason == v1alpha1.ReasonExternalDisabled {
		return true
	}
	return c.Status == metav1.ConditionTrue
}

// NextAction is what the manager is about to do, waits for, or is stopped by;
// empty when it has nothing to do.
func NextAction(c *v1alpha1.ValkeyCluster) string {
	p := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionProgressing)
	if p == nil || AtRest(*p) {
		return ""
	}
	return orElse(p.Message, p.Reason)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
