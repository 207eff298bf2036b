package cluster

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// setConditions writes every condition of a cluster. A transition time changes
// only when the status of the condition does.
func setConditions(s *v1alpha1.ValkeyClusterStatus, o *observation, out outcome) {
	for _, c := range []metav1.Condition{
		readyCondition(s, o), progressingCondition(out), degradedCondition(s, o), configCondition(o, out),
	} {
		c.ObservedGeneration = o.cluster.Generation
		meta.SetStatusCondition(&s.Conditions, c)
	}
	if o.cluster.Spec.TLS != nil {
		c := o.tls.condition()
		c.ObservedGeneration = o.cluster.Generation
		meta.SetStatusCondition(&s.Conditions, c)
	}
}

func condition(kind string, status bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func readyCondition(s *v1alpha1.ValkeyClusterStatus, o *observation) metav1.Condition {
	waiting := o.notInSync(false)
	switch missing := o.uncovered(); {
	case s.State == v1alpha1.StateCreating:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonCreating, s.Message)
	case s.State == v1alpha1.StateInvalid:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonTLSInvalid, s.Message)
	case !missing.Empty():
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonSlotsUncovered,
			fmt.Sprintf("slots %s are not served by any node that answers", missing))
	case len(waiting) > 0:
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonNodesNotReady, join(waiting))
	}
	inSync, wished := o.syncCount()
	if inSync < wished {
		return condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonNodesNotReady,
			fmt.Sprintf("%d of %d nodes are in sync", inSync, wished))
	}
	return condition(v1alpha1.ConditionReady, true, v1alpha1.ReasonActive,
		"every slot is served and every node is in sync")
}

func progressingCondition(out outcome) metav1.Condition {
	kind := v1alpha1.ConditionProgressing
	switch {
	case out.blocked != nil && out.blocked.reason == v1alpha1.ReasonPaused:
		return condition(kind, false, v1alpha1.ReasonPaused, out.blocked.message)
	case out.blocked != nil:
		return condition(kind, false, out.blocked.reason, out.blocked.message)
	case out.failed != nil:
		if text, ok := asConflict(out.failed); ok {
			return condition(kind, false, v1alpha1.ReasonNameConflict, text)
		}
		return condition(kind, true, v1alpha1.ReasonStepFailed, out.failed.Error())
	case out.decision.Waiting != "":
		return condition(kind, true, v1alpha1.ReasonWaiting, out.decision.Waiting)
	case len(out.decision.Actions) > 0:
		return condition(kind, true, v1alpha1.ReasonReconciling, describe(out.decision.Actions))
	}
	return condition(kind, false, v1alpha1.ReasonComplete, "the cluster is as wished")
}

// degradedCondition compares a cluster that was complete once with its wish.
func degradedCondition(s *v1alpha1.ValkeyClusterStatus, o *observation) metav1.Condition {
	kind := v1alpha1.ConditionDegraded
	if o.creating && s.State != v1alpha1.StateActive {
		return condition(kind, false, v1alpha1.ReasonCreating, "the cluster was not complete yet")
	}
	if len(o.awaited) > 0 {
		return condition(kind, true, v1alpha1.ReasonCopiesAwaited, join(o.awaited)+
			"; bring it back, or accept the loss: kubectl valkey acknowledge "+o.cluster.Name+" -n "+o.cluster.Namespace)
	}
	if missing := o.uncovered(); !missing.Empty() {
		return condition(kind, true, v1alpha1.ReasonSlotsUncovered, fmt.Sprintf("slots %s are not served", missing))
	}
	if waiting := o.notInSync(true); len(waiting) > 0 {
		return condition(kind, true, o.worst(), join(waiting))
	}
	if n := o.missing(); n > 0 {
		return condition(kind, true, v1alpha1.ReasonNodesNotReady, fmt.Sprintf("%d nodes are missing", n))
	}
	return condition(kind, false, v1alpha1.ReasonHealthy, "every node answers and is in sync")
}

// worst names the reason of the first node that was lost.
func (o *observation) worst() string {
	for _, n := range o.without(true) {
		v, asked := o.view.Nodes[n.Name]
		switch {
		case n.Dead():
			return v1alpha1.ReasonPodFailed
		case asked && !v.Reachable:
			return v1alpha1.ReasonNodeUnreachable
		case !asked:
			return v1alpha1.ReasonPodPending
		}
	}
	return v1alpha1.ReasonNodesNotReady
}

func configCondition(o *observation, out outcome) metav1.Condition {
	problems := append(o.config.all(), out.refused...)
	if len(problems) == 0 {
		return condition(v1alpha1.ConditionConfigResolved, true, v1alpha1.ReasonResolved,
			fmt.Sprintf("config %s resolves to image %s, Valkey %s", o.cluster.Spec.ConfigRef, o.config.Image, o.config.Version))
	}
	var messages []string
	for _, p := range problems {
		messages = append(messages, p.Message)
	}
	return condition(v1alpha1.ConditionConfigResolved, false, problems[0].Reason, join(messages))
}

// join puts sentences together, no more than a condition can hold.
func join(sentences []string) string {
	const most = 8
	if n := len(sentences) - most; n > 0 {
		sentences = append(sentences[:most:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(sentences, "; ")
}

// announce publishes one event for each condition whose reason or message says
// something new that a person should hear of, and for the state.
func (r *Reconciler) announce(o *observation, before, after v1alpha1.ValkeyClusterStatus) {
	if before.State != after.State && after.State == v1alpha1.StateActive {
		r.normal(o, v1alpha1.ReasonActive, "cluster is Active: %d shards, %s nodes in sync", after.ShardCount, after.Ready)
	}
	for _, now := range after.Conditions {
		was := meta.FindStatusCondition(before.Conditions, now.Type)
		if was != nil && was.Status == now.Status && was.Reason == now.Reason && withoutMenu(was.Message) == withoutMenu(now.Message) {
			continue
		}
		if kind, ok := noteworthy(was, now); ok {
			r.event(o, kind, now.Reason, "%s", now.Message)
		}
	}
}

// menu is the part of a message that lists what exists in place of what is missing.
var menu = regexp.MustCompile(`existing: [^;]*`)

// withoutMenu is what a message says of the cluster: that others publish or withdraw
// a config is no news of it.
func withoutMenu(message string) string { return menu.ReplaceAllString(message, "") }

// longestNote is how many bytes of text an event may have.
const longestNote = 1024

// note cuts a text to what an event can carry; the condition has all of it.
func note(text string) string {
	if len(text) <= longestNote {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:longestNote-len(more)], "") + more
}

// noteworthy reports whether a change of a condition deserves an event: trouble
// always, the end of trouble too, progress never.
func noteworthy(was *metav1.Condition, now metav1.Condition) (string, bool) {
	switch now.Type {
	case v1alpha1.ConditionDataLoss:
		return corev1.EventTypeWarning, now.Status == metav1.ConditionTrue
	case v1alpha1.ConditionConfigResolved, v1alpha1.ConditionTLSReady:
		if now.Status == metav1.ConditionFalse || now.Reason == v1alpha1.ReasonTLSExpiring {
			return corev1.EventTypeWarning, was == nil || was.Reason != now.Reason || was.Status != now.Status || now.Status == metav1.ConditionFalse
		}
		return corev1.EventTypeNormal, was != nil && was.Status == metav1.ConditionFalse
	case v1alpha1.ConditionDegraded:
		if now.Status == metav1.ConditionTrue {
			return corev1.EventTypeWarning, was == nil || was.Status != now.Status || was.Reason != now.Reason
		}
		return corev1.EventTypeNormal, was != nil && was.Status == metav1.ConditionTrue
	case v1alpha1.ConditionExternalAccessReady:
		trouble := now.Reason == v1alpha1.ReasonNameConflict || now.Reason == v1alpha1.ReasonGatewayMissing || now.Reason == v1alpha1.ReasonStepFailed
		return corev1.EventTypeWarning, trouble && (was == nil || was.Reason != now.Reason)
	case v1alpha1.ConditionProgressing:
		trouble := now.Reason == v1alpha1.ReasonStepFailed || now.Reason == v1alpha1.ReasonNameConflict
		return corev1.EventTypeWarning, trouble
	}
	return "", false
}
