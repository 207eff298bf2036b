package plan_test

import (
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// A primary that took slots while it was cut off keeps them when its replica has
// been elected meanwhile.
func TestTwoOwnersInAShardBecomeOne(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle()
	former, giver := w.primaryOf(1), w.primaryOf(0)
	taken := slots.FromRanges(slots.Range{Start: 0, End: 99})
	w.promote(w.replicasOf(1)[0].Name)
	s := w.Servers[former.Name]
	s.Primary, s.Slots = "", taken
	w.Servers[giver.Name].Slots = w.Servers[giver.Name].Slots.Minus(taken)
	w.settle()
	w.check(2, 1)
}

func TestNodesThatOnlyFollowAnotherShardMakeRoomForAPrimary(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	heir := w.primaryOf(0).Name
	for _, n := range []string{w.primaryOf(2).Name, w.replicasOf(2)[0].Name} {
		w.Servers[heir].Slots = w.Servers[heir].Slots.Union(w.Servers[n].Slots)
		w.Servers[n].Slots, w.Servers[n].Primary = slots.Set{}, w.Servers[heir].ID
	}
	w.State.Recorded = nil
	w.settle()
	w.check(3, 1)
}

func TestANodeIsKnownToHaveJoinedBeforeItTakesLostSlots(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.primaryOf(1).Pod = plan.PodTerminated
	for range 20 {
		for _, a := range plan.Next(w.Observe()).Actions {
			if a.Kind == plan.ReplaceLost {
				if w.node(a.Node).Lifecycle != v1alpha1.LifecycleActive {
					t.Errorf("%s takes slots while it is %s", a.Node, w.node(a.Node).Lifecycle)
				}
				return
			}
			w.do(a)
		}
	}
	t.Error("the lost slots are not replaced")
}

func TestAPlannedFailoverThatFoundTooFewVotesWaitsForTheVoters(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	for i := range w.State.Nodes {
		if n := &w.State.Nodes[i]; w.Servers[n.Name].Primary == "" {
			n.Outdated = "image"
		}
	}
	s := w.Observe()
	if a := only(t, plan.Next(s)); a.Kind != plan.Failover {
		t.Fatalf("want a failover, got %+v", a)
	}
	s.Failovers = map[int32]time.Duration{0: 5 * time.Second}
	if d := plan.Next(s); len(d.Actions) > 0 || d.Waiting == "" {
		t.Errorf("want to wait, got %v", kinds(d))
	}
	s.Failovers[0] = 11 * time.Second
	if a := only(t, plan.Next(s)); a.Kind != plan.Failover {
		t.Errorf("want another try, got %+v", a)
	}
}

// A replica that comes back from an outage may follow a primary that has long been
// replaced, and the replacement may be out of reach by now.
func TestAReplicaOfAFormerPrimaryDoesNotTakeOver(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.settle()
	dead, next, stale := w.primaryOf(0), w.replicasOf(0)[0], w.replicasOf(0)[1]
	dead.Pod = plan.PodTerminated
	for _, c := range []struct {
		what   string
		change func()
		takes  bool
	}{
		{"the other was seen as primary", func() { next.Role, next.Silent = topology.RolePrimary, time.Minute }, false},
		{"the other was not asked again yet", func() { next.Role, next.Silent = topology.RoleReplica, 0 }, false},
		{"the other was a replica and is silent", func() { next.Role, next.Silent = topology.RoleReplica, time.Minute }, true},
	} {
		c.change()
		takes := false
		for _, a := range plan.Next(w.silence(w.Observe(), next.Name, true)).Actions {
			takes = takes || a.Kind == plan.Failover && a.Mode == plan.Takeover && a.Node == stale.Name
		}
		if takes != c.takes {
			t.Errorf("%s: takeover %v, want %v", c.what, takes, c.takes)
		}
	}
}

// A question that failed once may have made others follow an empty primary.
func TestALastCopyIsNeverToldToFollowAnEmptyPrimary(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.settle()
	dead, other, last := w.primaryOf(0), w.replicasOf(0)[0], w.replicasOf(0)[1]
	dead.Pod, other.Pod = plan.PodGone, plan.PodTerminated
	w.do(plan.Action{Kind: plan.CreateNode, Node: "c-new", Position: dead.Position, Reason: "its place"})
	w.do(plan.Action{Kind: plan.CreateNode, Node: "c-newer", Position: other.Position, Reason: "its place"})
	for _, pair := range [][2]string{{"c-new", "c-newer"}, {"c-new", last.Name}} {
		w.do(plan.Action{Kind: plan.Introduce, Node: pair[0], Target: pair[1], Reason: "they are new"})
	}
	w.do(plan.Action{Kind: plan.Replicate, Node: "c-newer", TargetID: w.Servers["c-new"].ID, Reason: "the last copy did not answer"})
	w.State.Failovers = map[int32]time.Duration{0: time.Second}
	for range 5 {
		for _, a := range plan.Next(w.Observe()).Actions {
			if a.Kind == plan.Replicate && a.Node == last.Name {
				t.Fatal(a.Reason)
			}
			w.do(a)
		}
	}
}
