package plan_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

func TestAnyShapeIsBootstrapped(t *testing.T) {
	for shards := int32(1); shards <= 6; shards++ {
		for replicas := range int32(3) {
			t.Run(fmt.Sprintf("%dx%d", shards, replicas), func(t *testing.T) {
				w := newWorld(t, shards, replicas)
				w.settle()
				w.check(shards, replicas)
				for slot, times := range w.Assigned {
					if times != 1 {
						t.Fatalf("slot %d was assigned %d times", slot, times)
					}
				}
			})
		}
	}
}

func TestBootstrapGoesOnFromWhateverAKilledManagerLeft(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, 1+random.Int32N(4), random.Int32N(3))
		for range 1 + random.IntN(12) {
			actions := plan.Next(w.Observe()).Actions
			for _, a := range actions[:random.IntN(len(actions)+1)] {
				w.do(a) // the manager dies in the middle of a batch
			}
		}
		w.settle()
		w.check(w.State.Target.Shards, w.State.Target.ReplicasPerShard)
		for slot, times := range w.Assigned {
			if times != 1 {
				t.Fatalf("seed %d: slot %d was assigned %d times", seed, slot, times)
			}
		}
	}
}

func TestTheDecisionDoesNotDependOnTheOrderOfWhatWasObserved(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	w := newWorld(t, 3, 1)
	for range 10 {
		s := w.Observe()
		want := plan.Next(s)
		for range 5 {
			random.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
			random.Shuffle(len(s.Replies), func(i, j int) { s.Replies[i], s.Replies[j] = s.Replies[j], s.Replies[i] })
			if got := plan.Next(s); !reflect.DeepEqual(got, want) {
				t.Fatalf("the same state in another order gives\n%+v, not\n%+v", got, want)
			}
		}
		for _, a := range want.Actions {
			w.do(a)
		}
	}
}

func TestNoSlotIsAssignedWhileANodeIsMissing(t *testing.T) {
	w := newWorld(t, 3, 1)
	for _, a := range plan.Next(w.Observe()).Actions {
		w.do(a)
	}
	w.State.Nodes[4].Pod, w.State.Nodes[4].PodIP, w.State.Nodes[4].Detail = plan.PodPending, "", "Unschedulable: no nodes"
	d := plan.Next(w.Observe())
	if len(d.Actions) != 0 || !strings.Contains(d.Waiting, w.State.Nodes[4].Name) || !strings.Contains(d.Waiting, "Unschedulable") {
		t.Errorf("want to wait for the pending pod and say why, got %+v", d)
	}
}

func TestANodeThatDoesNotAnswerIsNamed(t *testing.T) {
	w := newWorld(t, 1, 1)
	for _, a := range plan.Next(w.Observe()).Actions {
		w.do(a)
	}
	s := w.Observe()
	s.Replies[0] = topology.Reply{Node: s.Replies[0].Node, Err: errors.New("dial: timeout")}
	d := plan.Next(s)
	if !strings.Contains(d.Waiting, s.Replies[0].Node) || !strings.Contains(d.Waiting, "timeout") {
		t.Errorf("want the node and its error in %q", d.Waiting)
	}
}

// F-05, B-04: a new node in a running cluster joins as a replica, whatever its
// index is.
func TestAReplacementAfterAFailoverJoinsAsReplica(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	for round := range 10 {
		var primary plan.Node
		for _, n := range w.State.Nodes {
			if n.Position.Shard == 1 && w.Servers[n.Name].Primary == "" {
				primary = n
			}
		}
		for _, n := range w.State.Nodes {
			if w.Servers[n.Name].Primary == primary.NodeID {
				w.promote(n.Name)
				break
			}
		}
		w.kill(primary.Name)
		before := w.Assigned
		w.settle()
		if w.Assigned != before {
			t.Fatalf("round %d: slots were assigned in a running cluster", round)
		}
		w.check(3, 1)
	}
}

// F-04: voters have to know a dead primary until its replica is elected.
func TestADeadPrimaryIsNotForgottenBeforeTheFailoverIsOver(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	var primary plan.Node
	for _, n := range w.State.Nodes {
		if n.Position.Shard == 0 && w.Servers[n.Name].Primary == "" {
			primary = n
		}
	}
	w.kill(primary.Name)
	w.State.Failovers = map[int32]time.Duration{0: 0} // the failover is under way
	for range 30 {
		for _, a := range plan.Next(w.Observe()).Actions {
			if a.Kind == plan.Forget {
				t.Fatalf("%s while %s still owns slots", a.Kind, primary.Name)
			}
			w.do(a)
		}
	}
	w.State.Failovers = nil
	w.settle()
	w.check(3, 1)
	for name, s := range w.Servers {
		if s.Knows[primary.NodeID] {
			t.Errorf("node %s still lists the dead primary", name)
		}
	}
}

func TestNoMemberIsForgottenWhileTheIDOfARunningNodeIsUnknown(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.State.Nodes[2].NodeID = ""
	s := w.Observe()
	s.Replies = slices.DeleteFunc(s.Replies, func(r topology.Reply) bool { return r.Node == w.State.Nodes[2].Name })
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.Forget {
			t.Errorf("%s %s, which may be the node that did not answer", a.Kind, a.TargetID)
		}
	}
}

func TestAClusterGrowsAndShrinks(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	for _, to := range []v1alpha1.TargetTopology{
		{Shards: 4, ReplicasPerShard: 1},
		{Shards: 4, ReplicasPerShard: 2},
		{Shards: 2, ReplicasPerShard: 2},
		{Shards: 2, ReplicasPerShard: 0},
		{Shards: 1, ReplicasPerShard: 0},
		{Shards: 6, ReplicasPerShard: 1},
	} {
		w.State.Target = to
		w.settle()
		w.check(to.Shards, to.ReplicasPerShard)
		for _, s := range w.Servers {
			if n := s.Slots.Len(); n != 0 && (n < slots.Count/int(to.Shards) || n > slots.Count/int(to.Shards)+1) {
				t.Errorf("%dx%d: a primary owns %d slots", to.Shards, to.ReplicasPerShard, n)
			}
		}
	}
}

func TestANodeThatDiedBeforeItJoinedIsReplacedAfterItsHold(t *testing.T) {
	w := newWorld(t, 1, 0)
	for _, a := range plan.Next(w.Observe()).Actions {
		w.do(a)
	}
	first := w.State.Nodes[0]
	w.kill(first.Name)
	w.State.Holds = map[plan.Position]plan.Hold{first.Position: {Remaining: time.Second, Reason: "it died early"}}
	if d := plan.Next(w.Observe()); len(d.Actions) != 0 || d.Waiting != "it died early" {
		t.Fatalf("want to wait for the hold, got %+v", d)
	}
	w.State.Holds = nil
	w.settle()
	w.check(1, 0)
	if w.State.Nodes[0].Name == first.Name {
		t.Error("the dead node is still there")
	}
}

func TestNodeNamesFollowFromTheirPlace(t *testing.T) {
	s := plan.State{Cluster: "c", UID: "u"}
	a := plan.NodeName(s, plan.Position{0, 0}, "", 0)
	if a != plan.NodeName(s, plan.Position{0, 0}, "", 0) {
		t.Error("the same place gives two names")
	}
	for what, b := range map[string]string{
		"another index":       plan.NodeName(s, plan.Position{0, 1}, "", 0),
		"another shard":       plan.NodeName(s, plan.Position{1, 0}, "", 0),
		"another predecessor": plan.NodeName(s, plan.Position{0, 0}, "c-00000", 0),
		"another attempt":     plan.NodeName(s, plan.Position{0, 0}, "", 1),
		"another cluster":     plan.NodeName(plan.State{Cluster: "c", UID: "v"}, plan.Position{0, 0}, "", 0),
	} {
		if a == b {
			t.Errorf("%s gives the same name %s", what, a)
		}
	}
	if len(a) != len("c-")+5 {
		t.Errorf("name %s does not end in 5 hex digits", a)
	}
}
