package tls

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// wished is material whose leaf and CA have these names.
func wished(leaf, ca string) certs.Material {
	return certs.Material{TLSMaterial: objects.TLSMaterial{CA: []byte(ca)}, Leaf: certs.Leaf{Fingerprint: leaf, NotAfter: now.AddDate(0, 0, 90)}}
}

// member is a node with a running server that has loaded something.
func member(name, leaf, ca string) reach.Member {
	return reach.Member{
		Node: &v1alpha1.ValkeyNode{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ValkeyNodeSpec{Lifecycle: v1alpha1.LifecycleActive},
			Status: v1alpha1.ValkeyNodeStatus{Applied: &v1alpha1.Applied{Leaf: leaf, CA: certs.CADigest([]byte(ca))}},
		},
		Pod: &corev1.Pod{Status: corev1.PodStatus{
			PodIP: "10.0.0.1", Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		}},
	}
}

// looked is a pass over a cluster of two nodes, whose Secret holds leaf new by CA ca.
func looked(members ...reach.Member) *pass {
	p := &pass{
		cluster: &v1alpha1.ValkeyCluster{Spec: v1alpha1.ValkeyClusterSpec{TLS: &v1alpha1.TLS{SecretRef: "cert"}}},
		now:     now, members: members, copied: true, problems: map[string]error{},
	}
	p.wish.Material = wished("new", "ca")
	p.have = p.wish.Material
	return p
}

func TestTLSReadyIsTrueOnlyWhenEveryNodeServesTheLeafAndConfirmedTheCA(t *testing.T) {
	both := func() *pass { return looked(member("c-0", "new", "ca"), member("c-1", "new", "ca")) }
	for name, c := range map[string]struct {
		pass   *pass
		before *metav1.Condition
		status metav1.ConditionStatus
		reason string
		words  []string
	}{
		"served":           {pass: both(), status: metav1.ConditionTrue, reason: v1alpha1.ReasonTLSServed, words: []string{"2027-02-28"}},
		"another leaf":     {pass: looked(member("c-0", "new", "ca"), member("c-1", "old", "ca")), status: metav1.ConditionFalse, reason: v1alpha1.ReasonTLSRotating, words: []string{"1 of 2", "c-1"}},
		"CA not confirmed": {pass: looked(member("c-0", "new", "old ca"), member("c-1", "new", "ca")), status: metav1.ConditionFalse, reason: v1alpha1.ReasonTLSRotating, words: []string{"1 of 2", "c-0"}},
		"no node":          {pass: looked(), status: metav1.ConditionFalse, reason: v1alpha1.ReasonWaiting},
		"a joining node doesn't count": {pass: func() *pass {
			p := both()
			joining := member("c-2", "", "")
			joining.Node.Spec.Lifecycle = v1alpha1.LifecycleJoining
			p.members = append(p.members, joining)
			return p
		}(), status: metav1.ConditionTrue, reason: v1alpha1.ReasonTLSServed},
		"between two steps": {pass: func() *pass {
			p := looked(member("c-0", "new", "both"), member("c-1", "new", "both"))
			p.step = certs.Step{Stage: "step 2 of 3", Waiting: []string{"c-1"}}
			return p
		}(), status: metav1.ConditionFalse, reason: v1alpha1.ReasonTLSRotating, words: []string{"step 2 of 3", "0 of 2", "waiting for c-1"}},
		"late": {
			pass: func() *pass {
				p := looked(member("c-0", "new", "ca"), member("c-1", "old", "ca"))
				p.problems["c-1"] = errors.New("the kubelet sleeps")
				return p
			}(), before: &metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTLSRotating, LastTransitionTime: metav1.NewTime(now.Add(-3 * time.Minute))},
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonTLSNotServed, words: []string{"c-1: the kubelet sleeps"},
		},
		"invalid": {pass: func() *pass {
			p := both()
			p.wish = reach.Wish{Invalid: &settings.Problem{Reason: v1alpha1.ReasonTLSInvalid, Message: "Secret cert: it has no ca.crt"}}
			return p
		}(), status: metav1.ConditionFalse, reason: v1alpha1.ReasonTLSInvalid, words: []string{"no ca.crt"}},
		"withheld": {pass: func() *pass {
			p := both()
			p.withheld = &settings.Problem{Reason: v1alpha1.ReasonTLSExpired, Message: "it expired"}
			return p
		}(), status: metav1.ConditionFalse, reason: v1alpha1.ReasonTLSExpired},
		"expires soon":       {pass: warned(both(), v1alpha1.ReasonTLSExpiring), status: metav1.ConditionTrue, reason: v1alpha1.ReasonTLSExpiring},
		"expired and served": {pass: warned(both(), v1alpha1.ReasonTLSExpired), status: metav1.ConditionFalse, reason: v1alpha1.ReasonTLSExpired},
	} {
		got := c.pass.condition(c.before)
		if got.Status != c.status || got.Reason != c.reason {
			t.Errorf("%s: %s %s: %s", name, got.Status, got.Reason, got.Message)
		}
		for _, word := range c.words {
			if !strings.Contains(got.Message, word) {
				t.Errorf("%s: %q is missing in %q", name, word, got.Message)
			}
		}
	}
}

func warned(p *pass, reason string) *pass {
	p.wish.Warnings = []settings.Problem{{Reason: reason, Message: "a warning"}}
	return p
}

func TestStatusNamesTheNodesThatServeTheLeaf(t *testing.T) {
	p := warned(looked(member("c-1", "new", "ca"), member("c-0", "new", "old"), member("c-2", "old", "ca")), v1alpha1.ReasonTLSExpiring)
	s := p.status()
	if s.Fingerprint != "new" || strings.Join(s.Nodes, " ") != "c-0 c-1" || len(s.Warnings) != 1 || !s.NotAfter.Equal(&metav1.Time{Time: p.wish.Material.Leaf.NotAfter}) {
		t.Errorf("status is %+v", s)
	}
	// While the Secret can't be used it is about what nodes go on with.
	p.have = wished("old", "ca")
	p.wish = reach.Wish{Invalid: &settings.Problem{}}
	if s := p.status(); s.Fingerprint != "old" || strings.Join(s.Nodes, " ") != "c-2" {
		t.Errorf("status is %+v", s)
	}
	p.copied = false
	if s := p.status(); s != nil {
		t.Errorf("status without any certificate is %+v", s)
	}
}

func TestARotationMakesOneEventAndTroubleMakesAWarning(t *testing.T) {
	at := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Status: status, Reason: reason, Message: message}
	}
	rotating, waiting := at("False", v1alpha1.ReasonTLSRotating, "1 of 2"), at("False", v1alpha1.ReasonWaiting, "")
	served, late := at("True", v1alpha1.ReasonTLSServed, ""), at("False", v1alpha1.ReasonTLSNotServed, "c-1")
	invalid := at("False", v1alpha1.ReasonTLSInvalid, "a")
	otherwise := at("False", v1alpha1.ReasonTLSInvalid, "b")
	expiring := at("True", v1alpha1.ReasonTLSExpiring, "in 3 days")
	sooner := at("True", v1alpha1.ReasonTLSExpiring, "in 2 days")
	for i, c := range []struct {
		was  *metav1.Condition
		now  metav1.Condition
		kind string
	}{
		{nil, waiting, ""},
		{&waiting, served, ""},
		{&served, rotating, ""},
		{&rotating, served, corev1.EventTypeNormal},
		{&rotating, late, corev1.EventTypeWarning},
		{&late, late, ""},
		{&late, served, corev1.EventTypeNormal},
		{&served, invalid, corev1.EventTypeWarning},
		{&invalid, otherwise, corev1.EventTypeWarning},
		{&invalid, invalid, ""},
		{nil, invalid, corev1.EventTypeWarning},
		{&served, expiring, corev1.EventTypeWarning},
		{&expiring, sooner, ""},
		{&expiring, served, corev1.EventTypeNormal},
		{&served, served, ""},
	} {
		kind, ok := noteworthy(c.was, c.now)
		if !ok {
			kind = ""
		}
		if kind != c.kind {
			t.Errorf("case %d: %q, want %q", i, kind, c.kind)
		}
	}
}
