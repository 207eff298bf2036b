package acl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

// overdue is how long a change of the users takes at most when all is well: the
// kubelet's own period and a tick. One that takes longer is worth a warning.
const overdue = 2 * time.Minute

// most nodes that a message names.
const most = 8

// report writes down what a pass found, and publishes an event for what people
// should hear of.
func (r *Reconciler) report(ctx context.Context, p *pass) (reach.Outcome, error) {
	for _, name := range p.reverted {
		r.event(p, corev1.EventTypeWarning, v1alpha1.ReasonManualChange, fmt.Sprintf(
			"the users of node %s had been changed by hand: they are again as the cluster's bindings say; change the bindings instead", name))
	}
	before := meta.FindStatusCondition(p.cluster.Status.Conditions, v1alpha1.ConditionACLApplied)
	now := p.condition(before)
	outcome, err := reach.WriteStatus(ctx, r.Client, p.cluster, func(s *v1alpha1.ValkeyClusterStatus) {
		reach.SetCondition(p.cluster, s, now)
		if p.answer != nil {
			s.Requests = withAnswer(s.Requests, *p.answer)
		}
	})
	if outcome != reach.Written {
		return outcome, err
	}
	if kind, ok := noteworthy(before, now); ok {
		r.event(p, kind, now.Reason, now.Message)
	}
	if p.answer != nil && p.answer.State == request.Done {
		r.event(p, corev1.EventTypeNormal, v1alpha1.ReasonRotated, "the passwords of the system users were rotated")
	}
	return outcome, nil
}

func (r *Reconciler) event(p *pass, kind, reason, message string) {
	r.Recorder.Eventf(p.cluster, nil, kind, reason, "Reconcile", "%s", reach.Note(message))
}

// withAnswer puts an answer among the others, sorted by verb.
func withAnswer(all []v1alpha1.RequestStatus, answer v1alpha1.RequestStatus) []v1alpha1.RequestStatus {
	all = slices.DeleteFunc(slices.Clone(all), func(a v1alpha1.RequestStatus) bool { return a.Verb == answer.Verb })
	all = append(all, answer)
	slices.SortFunc(all, func(a, b v1alpha1.RequestStatus) int { return strings.Compare(a.Verb, b.Verb) })
	return all
}

// noteworthy reports whether a change of the condition deserves an event. Problems
// of bindings have theirs with ConfigResolved.
func noteworthy(was *metav1.Condition, now metav1.Condition) (string, bool) {
	trouble := func(reason string) bool {
		return reason == v1alpha1.ReasonRoleRefused || reason == v1alpha1.ReasonACLNotApplied
	}
	switch {
	case trouble(now.Reason):
		return corev1.EventTypeWarning, was == nil || was.Reason != now.Reason || now.Reason == v1alpha1.ReasonRoleRefused && was.Message != now.Message
	case now.Status == metav1.ConditionTrue:
		return corev1.EventTypeNormal, was != nil && trouble(was.Reason)
	}
	return "", false
}

// condition is ACLApplied as the pass found it.
func (p *pass) condition(before *metav1.Condition) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionACLApplied, Status: status, Reason: reason, Message: message}
	}
	if p.refused != nil {
		return is(metav1.ConditionFalse, p.refused.Reason, p.refused.Message+"; servers go on with the users they have")
	}
	var lacking []string
	counted := 0
	for _, m := range p.members {
		if !m.Runs() || !m.InPlace() {
			continue
		}
		counted++
		if m.Applied().ACLRevision != acl.Revision(p.file()) {
			lacking = append(lacking, m.Node.Name)
		}
	}
	late := before != nil && before.Status == metav1.ConditionFalse && p.now.Sub(before.LastTransitionTime.Time) > overdue &&
		(before.Reason == v1alpha1.ReasonACLPending || before.Reason == v1alpha1.ReasonACLNotApplied)
	switch {
	case counted == 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonWaiting, "no node is in place yet")
	case !p.current():
		return is(metav1.ConditionFalse, v1alpha1.ReasonACLPending, "the users have changed; a server is asked whether it takes them before they are published")
	case len(lacking) > 0 && late:
		return is(metav1.ConditionFalse, v1alpha1.ReasonACLNotApplied, p.lagging(lacking))
	case len(lacking) > 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonACLPending, fmt.Sprintf("%d of %d nodes have the users in force; waiting for %s",
			counted-len(lacking), counted, strings.Join(lacking[:min(len(lacking), most)], ", ")))
	}
	return is(metav1.ConditionTrue, v1alpha1.ReasonACLApplied, "every node has the wished users in force")
}

// lagging names nodes that lack the users, with why.
func (p *pass) lagging(nodes []string) string {
	var parts []string
	for _, name := range nodes[:min(len(nodes), most)] {
		why := "it is not known to have loaded them"
		if err := p.problems[name]; err != nil {
			why = strings.ReplaceAll(reach.Stable(err).Error(), "\n", ": ")
		}
		parts = append(parts, name+": "+why)
	}
	if n := len(nodes) - most; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", n))
	}
	return "nodes lack the wished users: " + strings.Join(parts, "; ")
}
