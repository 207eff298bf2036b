package cluster

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

var key = types.NamespacedName{Namespace: "n", Name: "c"}

func TestTheLongerNothingChangesTheRarerAClusterIsLookedAt(t *testing.T) {
	p := newPace()
	now := time.Unix(1000, 0)
	if got := p.next(key, "a pod", false, now); got != fastest {
		t.Errorf("first look after %s, want %s", got, fastest)
	}
	if got := p.next(key, "a pod", false, now.Add(20*time.Second)); got != 2*time.Second {
		t.Errorf("after 20 s of waiting every %s, want 2s", got)
	}
	if got := p.next(key, "a pod", false, now.Add(time.Hour)); got != slowest {
		t.Errorf("after an hour of waiting every %s, want %s", got, slowest)
	}
	if got := p.next(key, "gossip", false, now.Add(time.Hour)); got != fastest {
		t.Errorf("something new is looked at after %s, want %s", got, fastest)
	}
	if got := p.next(key, "gossip", true, now.Add(2*time.Hour)); got != fastest {
		t.Errorf("after an action the next look is after %s, want %s", got, fastest)
	}
	if got := p.next(key, "", false, now.Add(2*time.Hour)); got != slowest {
		t.Errorf("a cluster that is as wished is looked at after %s, want %s", got, slowest)
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
