package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

var key = types.NamespacedName{Namespace: "n", Name: "c"}

func TestTheLongerNothingIsDoneTheRarerAClusterIsLookedAt(t *testing.T) {
	p := newPace()
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		what           string
		acted, waiting bool
		after, want    time.Duration
	}{
		{"the first look", false, true, 0, fastest},
		{"a second of waiting", false, true, time.Second, fastest},
		{"21 s of waiting", false, true, 21 * time.Second, 2 * time.Second},
		{"an hour of waiting", false, true, time.Hour, slowest},
		{"an action", true, true, time.Hour, fastest},
		{"21 s after it", false, true, time.Hour + 21*time.Second, 2 * time.Second},
		{"nothing left to do", false, false, time.Hour + 21*time.Second, slowest},
		{"waiting again", false, true, 2 * time.Hour, fastest},
	} {
		if got := p.next(key, c.acted, c.waiting, now.Add(c.after)); got != c.want {
			t.Errorf("%s: the next look is after %s, want %s", c.what, got, c.want)
		}
	}
}

func TestNodesThatDieBeforeTheyJoinAreReplacedMoreAndMoreSlowly(t *testing.T) {
	h := newHolds()
	now := time.Unix(1000, 0)
	p := plan.Position{Shard: 1}
	for i, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300, 300} {
		name := string(rune('a' + i))
		h.died(key, p, name, now)
		if got := h.remaining(key, p, now); got != want*time.Second {
			t.Errorf("after death %d the position waits %s, want %ds", i+1, got, want)
		}
		h.died(key, p, name, now.Add(time.Second))
		if got := h.remaining(key, p, now.Add(time.Second)); got != want*time.Second-time.Second {
			t.Errorf("seeing death %d again makes it wait %s", i+1, got)
		}
	}
	if got := h.remaining(key, plan.Position{Shard: 2}, now); got != 0 {
		t.Errorf("another position waits %s", got)
	}
	h.joined(key, p)
	if got := h.remaining(key, p, now); got != 0 {
		t.Errorf("after a node joined the position waits %s", got)
	}
}

func TestOneMissedAnswerIsAskedForOnceMore(t *testing.T) {
	r := &Reconciler{moments: newMoments()}
	o := &observation{now: time.Unix(1000, 0)}
	if r.secondLook(key, o) {
		t.Error("nobody missed an answer")
	}
	o.blinked = []string{"c-00000"}
	if !r.secondLook(key, o) {
		t.Error("a first miss is believed")
	}
	o.now = o.now.Add(blink)
	if r.secondLook(key, o) {
		t.Error("a second miss is not believed")
	}
	o.now = o.now.Add(time.Minute)
	if !r.secondLook(key, o) {
		t.Error("a miss much later is believed at once")
	}
	o = healthy()
	o.now, o.blinked = o.now.Add(time.Hour), []string{"c-11111"}
	told := metav1.NewTime(o.now.Add(30 * time.Second))
	o.pods["c-00000"].DeletionTimestamp, o.pods["c-00000"].DeletionGracePeriodSeconds = &told, ptr.To(int64(30))
	if r.secondLook(key, o) {
		t.Error("a primary that was told to stop waits for a node that missed an answer")
	}
}

// The node that is to be replaced does not make up for successors that die.
func TestAnOutdatedNodeDoesNotEndTheHoldOfItsPosition(t *testing.T) {
	r := &Reconciler{holds: newHolds()}
	o := healthy()
	dead := *o.nodes[1].DeepCopy()
	dead.Name, dead.Spec.Lifecycle = "c-22222", v1alpha1.LifecycleJoining
	o.nodes = append(o.nodes, dead)
	o.pods[dead.Name] = &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	o.outdated = map[string]string{"c-11111": "image"}
	for _, want := range []time.Duration{10 * time.Second, 5 * time.Second} {
		r.noteDeaths(o)
		if got := o.holds[plan.Position{Index: 1}].Remaining; got != want {
			t.Errorf("the position waits %s, want %s", got, want)
		}
		o.now = o.now.Add(5 * time.Second)
	}
}
