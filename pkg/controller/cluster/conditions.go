package cluster

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
)

// setConditions writes every condition of a cluster. A transition time changes
// only when the status of the condition does.
func setConditions(s *v1alpha1.ValkeyClusterStatus, o *observation, out outcome) {
	for _, c := range []metav1.Condition{
		readyCondition(s, o), progressingCondition(o, out), degradedCondition(s, o), configCondition(o, out),
	} {
		reach.SetCondition(o.cluster, s, c)
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

func progressingCondition(o *observation, out outcome) metav1.Condition {
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
	case o.migrationFailed(out.decision.Waiting):
		return condition(kind, true, v1alpha1.ReasonMigrationFailed, out.decision.Waiting)
	case out.decision.Waiting != "":
		return condition(kind, true, v1alpha1.ReasonWaiting, out.decision.Waiting)
	case len(out.decision.Actions) > 0:
		return condition(kind, true, v1alpha1.ReasonReconciling, describe(out.decision.Actions))
	}
	return condition(kind, false, v1alpha1.ReasonComplete, "the cluster is as wished")
}

// migrationFailed reports whether what is waited for is the next attempt of a
// migration that failed.
func (o *observation) migrationFailed(waiting string) bool {
	for _, hold := range o.stalled {
		if hold.Remaining > 0 && strings.Contains(waiting, hold.Reason) {
			return true
		}
	}
	return false
}

// degradedCondition compares a cluster that was complete once with its wish.
func degradedCondition(s *v1alpha1.ValkeyClusterStatus, o *observation) metav1.Condition {
	kind := v1alpha1.ConditionDegraded
	if o.creating && s.State != v1alpha1.StateActive {
		return condition(kind, false, v1alpha1.ReasonCreating, "the cluster was not complete yet")
	}
	if n := o.cutOff(); n > 0 {
		return condition(kind, true, v1alpha1.ReasonNodeUnreachable, fmt.Sprintf(
			"none of %d nodes answers the manager on port %d, although their pods run: clients may be served all the same, but nothing is repaired or changed; "+
				"a NetworkPolicy may be in the way of the manager, kubectl valkey networkpolicy %s -n %s makes one that isn't", n, objects.ClientPort, o.cluster.Name, o.cluster.Namespace))
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

// cutOff counts the nodes of a cluster of which none answers, although the kubelets
// say that all that are not dead run: then it is rather the manager that can't reach
// them than they that have failed, all at once. It is 0 otherwise.
func (o *observation) cutOff() int {
	running := 0
	for _, n := range o.planNodes() {
		if v, asked := o.view.Nodes[n.Name]; asked && v.Reachable {
			return 0
		}
		if n.Dead() {
			continue
		}
		// The pods of a Kubernetes node that is lost are no longer ready, whatever
		// the gate says.
		pod := o.pods[n.Name]
		if n.Pod != plan.PodRunning || n.InSync && !ready(pod) {
			return 0
		}
		running++
	}
	return running
}

// ready is whether a pod is, by its kubelet's word and its gates.
func ready(pod *corev1.Pod) bool {
	return podCondition(pod, corev1.PodReady).Status == corev1.ConditionTrue
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
		if kind, ok := noteworthy(was, now); ok && !r.toldBefore(o, now) {
			r.event(o, kind, now.Reason, "%s", now.Message)
		}
	}
}

// menu is the part of a message that lists what exists in place of what is missing.
var menu = regexp.MustCompile(`existing: [^;]*`)

// withoutMenu is what a message says of the cluster: that others publish or withdraw
// a config is no news of it.
func withoutMenu(message string) string { return menu.ReplaceAllString(message, "") }

// attempt is the part of a message that changes with each attempt, with how many
// slots are left to move.
var attempt = regexp.MustCompile(`^\d+ slots | \(attempt \d+, the next at [^)]*\)`)

// oldNews is how long a migration that fails in the same way again is no news.
const oldNews = time.Hour

// toldBefore reports whether an event has told of a failing migration lately:
// between two attempts the condition says that one is under way.
func (r *Reconciler) toldBefore(o *observation, now metav1.Condition) bool {
	if now.Reason != v1alpha1.ReasonMigrationFailed {
		return false
	}
	key, what := client.ObjectKeyFromObject(o.cluster), "told "+attempt.ReplaceAllString(now.Message, "")
	ago, told := r.moments.ago(key, what, o.now)
	r.moments.mark(key, what, o.now)
	return told && ago < oldNews
}

// noteworthy reports whether a change of a condition deserves an event: trouble
// always, the end of trouble too, progress never.
func noteworthy(was *metav1.Condition, now metav1.Condition) (string, bool) {
	switch now.Type {
	case v1alpha1.ConditionDataLoss:
		return corev1.EventTypeWarning, now.Status == metav1.ConditionTrue
	case v1alpha1.ConditionConfigResolved:
		if now.Status == metav1.ConditionFalse {
			return corev1.EventTypeWarning, true
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
		trouble := now.Reason == v1alpha1.ReasonStepFailed || now.Reason == v1alpha1.ReasonNameConflict || now.Reason == v1alpha1.ReasonMigrationFailed
		return corev1.EventTypeWarning, trouble
	}
	return "", false
}
