package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// answer returns what a node says in a State, to be changed.
func answer(t *testing.T, s plan.State, node string) *reply {
	t.Helper()
	for i := range s.Replies {
		if s.Replies[i].Node == node {
			return &s.Replies[i]
		}
	}
	t.Fatalf("node %s says nothing", node)
	return nil
}

// hollow makes a replica look as if its first sync never ended.
func (w *world) hollow(s plan.State, name string) {
	w.node(name).InSync, w.node(name).Lifecycle = false, v1alpha1.LifecycleJoining
	r := answer(w.t, s, name)
	r.Replication.LinkUp, r.Replication.HasLinkDownSeconds, r.Replication.LinkDownSeconds = false, true, -1
}

func TestOneFailedQuestionIsNoLackOfAMajority(t *testing.T) {
	w := newWorld(t, 4, 1)
	w.settle()
	w.primaryOf(0).Pod = plan.PodTerminated
	s := w.Observe()
	r := answer(t, s, w.primaryOf(1).Name)
	*r = reply{Node: r.Node, PodIP: r.PodIP, ID: r.ID, Err: errors.New("read: connection reset by peer")}
	if a := only(t, plan.Next(s)); a.Kind != plan.Failover || a.Mode != plan.Force {
		t.Errorf("want FORCE, since three of four primaries can vote, got %+v", a)
	}
}

func TestAReplicaWithoutACopyIsNotInTheWayOfALostShard(t *testing.T) {
	for _, creating := range []bool{false, true} {
		w := newWorld(t, 3, 1)
		w.settle()
		w.State.Creating = creating
		w.primaryOf(1).Pod = plan.PodTerminated
		replica := w.replicasOf(1)[0].Name
		s := w.Observe()
		w.hollow(s, replica)
		if a := only(t, plan.Next(s)); a.Kind != plan.DeleteNode || a.Node != replica {
			t.Errorf("creating=%v: want the replica to go, got %+v", creating, a)
		}
	}
}

func TestACopyThatNoGateMarksIsTakenWhenThereIsNoOther(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle()
	primary, replica := w.primaryOf(1), w.replicasOf(1)[0]
	primary.Pod = plan.PodTerminated
	s := w.Observe()
	replica.InSync = false
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.Failover {
			t.Errorf("%s before an election could be over", a.Mode)
		}
	}
	answer(t, s, replica.Name).Replication.LinkDownSeconds = 20
	if a := only(t, plan.Next(s)); a.Kind != plan.Failover || a.Node != replica.Name {
		t.Errorf("want the only copy to be promoted, got %+v", a)
	}
	primary.Pod = plan.PodGone // it may come back
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.Failover {
			t.Errorf("%s of a copy that may be old, while a better one may come back", a.Mode)
		}
	}
}

func TestAReplicaOfAPrimaryWithoutSlotsIsNoCopyOfALostShard(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary, replica := w.primaryOf(1), w.replicasOf(1)[0]
	s := w.Servers[primary.Name]
	s.Slots = slots.Set{}
	primary.Pod = plan.PodTerminated
	if a := only(t, plan.Next(w.Observe())); a.Kind != plan.DeleteNode || a.Node != replica.Name {
		t.Errorf("want the copy of nothing to go, got %+v", a)
	}
}

func TestNoSlotsMoveWhileSomeHaveNoOwnerThatAnswers(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.primaryOf(2).Terminating = true
	for range 10 {
		for _, a := range plan.Next(w.Observe()).Actions {
			if a.Kind == plan.MoveSlots {
				t.Fatal(a.Reason)
			}
			w.do(a)
		}
	}
}

// What was recorded may be older than the last move.
func TestALossIsFoundWithTheShardThatOwnedTheSlotsLast(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.settle()
	last := w.primaryOf(1)
	last.Pod = plan.PodGone
	w.Observe()
	w.State.Recorded[0], w.State.Recorded[1] = slots.All(), slots.Set{}
	s := w.Observe()
	s.Recorded = map[int32]slots.Set{0: slots.All()}
	if awaited := plan.AwaitedCopies(s); len(awaited) != 1 || !strings.Contains(awaited[0], last.Name) {
		t.Errorf("awaited copies %v, want %s", awaited, last.Name)
	}
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.Forget || a.Kind == plan.ReplaceLost {
			t.Errorf("%s while %s may be alive", a.Kind, last.Name)
		}
	}
}
