package acl

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func member(name, revision string) reach.Member {
	return reach.Member{
		Node: &v1alpha1.ValkeyNode{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ValkeyNodeSpec{Lifecycle: v1alpha1.LifecycleActive},
			Status: v1alpha1.ValkeyNodeStatus{Applied: &v1alpha1.Applied{ACLRevision: revision}},
		},
		Pod: &corev1.Pod{Status: corev1.PodStatus{
			PodIP: "10.0.0.1", Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		}},
	}
}

// looked is a pass over a cluster whose wished users are published.
func looked(t *testing.T, revisions ...string) *pass {
	t.Helper()
	p := &pass{
		cluster: &v1alpha1.ValkeyCluster{}, now: now, problems: map[string]error{}, primaryAuth: map[string]bool{},
		passwords: objects.Passwords{Operator: "o", Replication: "r"},
	}
	file, problems := acl.Render(p.input())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p.published = objects.ACLConfigMap(p.cluster, file)
	for i, revision := range revisions {
		if revision == "it" {
			revision = acl.Revision(file)
		}
		p.members = append(p.members, member("c-"+string(rune('0'+i)), revision))
	}
	return p
}

func TestACLAppliedIsTrueOnlyWhenEveryNodeHasTheWishedUsers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*pass)
		nodes  []string
		before *metav1.Condition
		status metav1.ConditionStatus
		reason string
		words  []string
	}{
		"applied": {nodes: []string{"it", "it"}, status: metav1.ConditionTrue, reason: v1alpha1.ReasonACLApplied},
		"lagging": {nodes: []string{"it", "older"}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonACLPending, words: []string{"1 of 2", "c-1"}},
		"no node": {status: metav1.ConditionFalse, reason: v1alpha1.ReasonWaiting},
		"not published": {
			nodes: []string{"it"}, change: func(p *pass) { p.cluster.Spec.ACL = []v1alpha1.ACLBinding{{Username: "app"}} },
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonACLPending,
		},
		"refused": {
			nodes: []string{"it"}, change: func(p *pass) {
				p.refused = &settings.Problem{Reason: v1alpha1.ReasonRoleRefused, Message: "no category"}
			},
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonRoleRefused, words: []string{"no category", "go on"},
		},
		"late": {
			nodes: []string{"older"}, change: func(p *pass) { p.problems["c-0"] = errors.New("it sleeps") },
			before: &metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonACLPending, LastTransitionTime: metav1.NewTime(now.Add(-3 * time.Minute))},
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonACLNotApplied, words: []string{"c-0: it sleeps"},
		},
	} {
		p := looked(t, c.nodes...)
		if c.change != nil {
			c.change(p)
		}
		got := p.condition(c.before)
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

// at each point of a rotation, what is published and what is missing say how to
// go on.
func TestARotationGoesOnFromWhereItWas(t *testing.T) {
	p := looked(t, "it", "it")
	if p.missing() {
		t.Error("at rest something is missing")
	}
	p.passwords.NextOperator, p.passwords.NextReplication = "o2", "r2"
	if p.current() || !p.missing() {
		t.Error("new passwords are in the Secret, and the users are as they shall be")
	}
	file, _ := acl.Render(p.input())
	for _, password := range []string{"o", "o2", "r", "r2"} {
		if !strings.Contains(file, "#"+acl.Hash(password)) {
			t.Errorf("password %s is not accepted during a rotation", password)
		}
	}
	p.published.Data[objects.ACLFile] = file
	if !p.current() || len(p.behind()) != 2 {
		t.Errorf("published, and %v are behind", p.behind())
	}
	p.members = []reach.Member{member("c-0", acl.Revision(file)), member("c-1", acl.Revision(file))}
	p.primaryAuth["c-0"] = true
	if len(p.behind()) != 0 || p.allUseNext() {
		t.Error("one replica uses the old password still")
	}
	p.primaryAuth["c-1"] = true
	if !p.allUseNext() || !p.missing() {
		t.Error("the Secret still holds both")
	}
}

func TestUnknownNamesAreNamedWithTheirRole(t *testing.T) {
	p := verdict([]acl.RuleName{{Role: "r", Name: "config|nosuch"}, {Role: "a", Category: true, Name: "nosuch"}})
	want := `ValkeyRole "a": the servers know no category "nosuch"; ValkeyRole "r": the servers know no command "config nosuch": correct the name in the role`
	if p == nil || p.Message != want || p.Reason != v1alpha1.ReasonRoleRefused {
		t.Errorf("%+v", p)
	}
	if p := verdict(nil); p != nil {
		t.Errorf("nothing is unknown: %+v", p)
	}
}
