package tls

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
)

// overdue is how long a rotation takes at most when all is well: the kubelet's own
// period and a tick. One that takes longer is worth a warning.
const overdue = 2 * time.Minute

// report writes down what a pass found, and publishes an event for what people
// should hear of.
func (r *Reconciler) report(ctx context.Context, p *pass) (reach.Outcome, error) {
	before := meta.FindStatusCondition(p.cluster.Status.Conditions, v1alpha1.ConditionTLSReady)
	now := p.condition(before)
	outcome, err := reach.WriteStatus(ctx, r.Client, p.cluster, func(s *v1alpha1.ValkeyClusterStatus) {
		reach.SetCondition(p.cluster, s, now)
		s.TLS = p.status()
	})
	if outcome != reach.Written {
		return outcome, err
	}
	if kind, ok := noteworthy(before, now); ok {
		r.Recorder.Eventf(p.cluster, nil, kind, now.Reason, "Reconcile", "%s", reach.Note(now.Message))
	}
	return outcome, nil
}

// noteworthy reports whether a change of the condition deserves an event: trouble
// and its end do, progress doesn't.
func noteworthy(was *metav1.Condition, now metav1.Condition) (string, bool) {
	progress := func(c metav1.Condition) bool {
		return c.Reason == v1alpha1.ReasonWaiting || c.Reason == v1alpha1.ReasonTLSRotating
	}
	fresh := was == nil || was.Reason != now.Reason || was.Status != now.Status
	switch {
	case progress(now):
		return "", false
	case now.Reason == v1alpha1.ReasonTLSServed:
		return corev1.EventTypeNormal, was != nil && fresh && was.Reason != v1alpha1.ReasonWaiting
	case now.Reason == v1alpha1.ReasonTLSInvalid || now.Reason == v1alpha1.ReasonTLSSecretNotFound:
		return corev1.EventTypeWarning, fresh || was.Message != now.Message
	}
	return corev1.EventTypeWarning, fresh
}

// serving counts the nodes in place, and names those of them that serve the leaf and
// have confirmed the CA of the Secret, and those that don't.
func (p *pass) serving() (served, lacking []string) {
	for _, m := range p.members {
		if !m.Runs() || !m.InPlace() {
			continue
		}
		if a, want := m.Applied(), p.wish.Material.Loaded(); a.Leaf == want.Leaf && a.CA == want.CA {
			served = append(served, m.Node.Name)
		} else {
			lacking = append(lacking, m.Node.Name)
		}
	}
	return served, lacking
}

// condition is TLSReady as the pass found it.
func (p *pass) condition(before *metav1.Condition) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionTLSReady, Status: status, Reason: reason, Message: message}
	}
	if p.wish.Invalid != nil {
		return is(metav1.ConditionFalse, p.wish.Invalid.Reason, p.wish.Invalid.Message)
	}
	if p.damaged != nil {
		return is(metav1.ConditionFalse, v1alpha1.ReasonTLSNotServed, p.damaged.Error())
	}
	if p.withheld != nil {
		return is(metav1.ConditionFalse, p.withheld.Reason, p.withheld.Message)
	}
	served, lacking := p.serving()
	expiring := func(reason string) bool { return reason == v1alpha1.ReasonTLSExpiring }
	warnings := p.wish.Warnings
	switch {
	case len(warnings) > 0 && !expiring(warnings[0].Reason):
		return is(metav1.ConditionFalse, warnings[0].Reason, warnings[0].Message)
	case len(lacking) > 0 || p.step.Stage != "" && len(served) > 0:
		return p.rotating(before, len(served), lacking)
	case len(served) == 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonWaiting, "no node is in place yet")
	case len(warnings) > 0:
		return is(metav1.ConditionTrue, warnings[0].Reason, warnings[0].Message)
	}
	return is(metav1.ConditionTrue, v1alpha1.ReasonTLSServed,
		fmt.Sprintf("every node serves the certificate, which is valid until %s", p.wish.Material.Leaf.NotAfter.UTC().Format(time.RFC3339)))
}

// rotating says how far the nodes are on their way to the Secret's certificate, and
// what keeps them when that takes too long.
func (p *pass) rotating(before *metav1.Condition, served int, lacking []string) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionTLSReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTLSRotating}
	parts := []string{fmt.Sprintf("%d of %d nodes serve the certificate of Secret %s", served, served+len(lacking), p.cluster.Spec.TLS.SecretRef)}
	switch {
	case p.step.Write != nil:
		parts = append(parts, "next: "+p.step.Stage)
	case p.step.Stage != "":
		parts = append(parts, p.step.Stage)
	}
	if p.cluster.Spec.Paused {
		c.Message = strings.Join(append(parts, "spec.paused is true: the manager reports, but changes nothing"), "; ")
		return c
	}
	late := before != nil && before.Status == metav1.ConditionFalse && p.now.Sub(before.LastTransitionTime.Time) > overdue &&
		(before.Reason == v1alpha1.ReasonTLSRotating || before.Reason == v1alpha1.ReasonTLSNotServed)
	behind := lacking
	if len(p.step.Waiting) > 0 {
		behind = p.step.Waiting
	}
	if !late {
		if len(behind) > 0 {
			parts = append(parts, "waiting for "+list(behind))
		}
		c.Message = strings.Join(parts, "; ")
		return c
	}
	c.Reason = v1alpha1.ReasonTLSNotServed
	for _, name := range behind[:min(len(behind), most)] {
		why := "it is not known to have loaded it"
		if err := p.problems[name]; err != nil {
			why = reach.Stable(err).Error()
		}
		parts = append(parts, name+": "+why)
	}
	c.Message = strings.Join(parts, "; ")
	return c
}

// most nodes that a message names.
const most = 8

func list(names []string) string {
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

// status is about the leaf of the Secret, or while the Secret can't be used about
// the one that nodes go on with.
func (p *pass) status() *v1alpha1.TLSStatus {
	material := p.wish.Material
	if p.wish.Invalid != nil {
		if material = p.have; !p.copied {
			return nil
		}
	}
	notAfter := metav1.NewTime(material.Leaf.NotAfter)
	s := &v1alpha1.TLSStatus{Fingerprint: material.Leaf.Fingerprint, NotAfter: &notAfter}
	for _, m := range p.members {
		if m.Runs() && m.Applied().Leaf == material.Leaf.Fingerprint {
			s.Nodes = append(s.Nodes, m.Node.Name)
		}
	}
	slices.Sort(s.Nodes)
	for _, w := range p.wish.Warnings {
		s.Warnings = append(s.Warnings, w.Message)
	}
	return s
}
