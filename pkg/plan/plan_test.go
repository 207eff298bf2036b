package plan

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
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

func TestAnyShapeIsBootstrapped(t *testing.T) {
	for shards := int32(1); shards <= 6; shards++ {
		for replicas := int32(0); replicas <= 2; replicas++ {
			t.Run(fmt.Sprintf("%dx%d", shards, replicas), func(t *testing.T) {
				w := newWorld(t, shards, replicas)
				w.settle()
				w.check(shards, replicas)
				for slot, times := range w.assigned {
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
			actions := Next(w.observe()).Actions
			for _, a := range actions[:random.IntN(len(actions)+1)] {
				w.do(a) // the manager dies in the middle of a batch
			}
		}
		w.settle()
		w.check(w.state.Target.Shards, w.state.Target.ReplicasPerShard)
		for slot, times := range w.assigned {
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
		s := w.observe()
		want := Next(s)
		for range 5 {
			random.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
			random.Shuffle(len(s.Replies), func(i, j int) { s.Replies[i], s.Replies[j] = s.Replies[j], s.Replies[i] })
			if got := Next(s); !reflect.DeepEqual(got, want) {
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
	for _, a := range Next(w.observe()).Actions {
		w.do(a)
	}
	w.state.Nodes[4].Pod, w.state.Nodes[4].PodIP, w.state.Nodes[4].Detail = PodPending, "", "Unschedulable: no nodes"
	d := Next(w.observe())
	if len(d.Actions) != 0 || !strings.Contains(d.Waiting, w.state.Nodes[4].Name) || !strings.Contains(d.Waiting, "Unschedulable") {
		t.Errorf("want to wait for the pending pod and say why, got %+v", d)
	}
}

func TestANodeThatDoesNotAnswerIsNamed(t *testing.T) {
	w := newWorld(t, 1, 1)
	for _, a := range Next(w.observe()).Actions {
		w.do(a)
	}
	s := w.observe()
	s.Replies[0] = topology.Reply{Node: s.Replies[0].Node, Err: errors.New("dial: timeout")}
	d := Next(s)
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
		var primary Node
		for _, n := range w.state.Nodes {
			if n.Position.Shard == 1 && w.servers[n.Name].primary == "" {
				primary = n
			}
		}
		for _, n := range w.state.Nodes {
			if w.servers[n.Name].primary == primary.NodeID {
				w.promote(n.Name)
				break
			}
		}
		w.kill(primary.Name)
		before := w.assigned
		w.settle()
		if w.assigned != before {
			t.Fatalf("round %d: slots were assigned in a running cluster", round)
		}
		w.check(3, 1)
	}
}

// F-04: voters have to know a dead primary until its replica is elected.
func TestADeadPrimaryIsNotForgottenBeforeTheFailoverIsOver(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	var primary Node
	for _, n := range w.state.Nodes {
		if n.Position.Shard == 0 && w.servers[n.Name].primary == "" {
			primary = n
		}
	}
	w.kill(primary.Name)
	w.state.Failovers = map[int32]time.Duration{0: 0} // the failover is under way
	for range 30 {
		for _, a := range Next(w.observe()).Actions {
			if a.Kind == Forget {
				t.Fatalf("%s while %s still owns slots", a.Kind, primary.Name)
			}
			w.do(a)
		}
	}
	w.state.Failovers = nil
	w.settle()
	w.check(3, 1)
	for name, s := range w.servers {
		if s.knows[primary.NodeID] {
			t.Errorf("node %s still lists the dead primary", name)
		}
	}
}

func TestNoMemberIsForgottenWhileTheIDOfARunningNodeIsUnknown(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.state.Nodes[2].NodeID = ""
	s := w.observe()
	s.Replies = slices.DeleteFunc(s.Replies, func(r topology.Reply) bool { return r.Node == w.state.Nodes[2].Name })
	for _, a := range Next(s).Actions {
		if a.Kind == Forget {
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
		w.state.Target = to
		w.settle()
		w.check(to.Shards, to.ReplicasPerShard)
		for _, s := range w.servers {
			if n := s.slots.Len(); n != 0 && (n < slots.Count/int(to.Shards) || n > slots.Count/int(to.Shards)+1) {
				t.Errorf("%dx%d: a primary owns %d slots", to.Shards, to.ReplicasPerShard, n)
			}
		}
	}
}

func TestANodeThatDiedBeforeItJoinedIsReplacedAfterItsHold(t *testing.T) {
	w := newWorld(t, 1, 0)
	for _, a := range Next(w.observe()).Actions {
		w.do(a)
	}
	first := w.state.Nodes[0]
	w.kill(first.Name)
	w.state.Holds = map[Position]Hold{first.Position: {Remaining: time.Second, Reason: "it died early"}}
	if d := Next(w.observe()); len(d.Actions) != 0 || d.Waiting != "it died early" {
		t.Fatalf("want to wait for the hold, got %+v", d)
	}
	w.state.Holds = nil
	w.settle()
	w.check(1, 0)
	if w.state.Nodes[0].Name == first.Name {
		t.Error("the dead node is still there")
	}
}

func TestNodeNamesFollowFromTheirPlace(t *testing.T) {
	s := State{Cluster: "c", UID: "u"}
	a := NodeName(s, Position{0, 0}, "", 0)
	if a != NodeName(s, Position{0, 0}, "", 0) {
		t.Error("the same place gives two names")
	}
	for what, b := range map[string]string{
		"another index":       NodeName(s, Position{0, 1}, "", 0),
		"another shard":       NodeName(s, Position{1, 0}, "", 0),
		"another predecessor": NodeName(s, Position{0, 0}, "c-00000", 0),
		"another attempt":     NodeName(s, Position{0, 0}, "", 1),
		"another cluster":     NodeName(State{Cluster: "c", UID: "v"}, Position{0, 0}, "", 0),
	} {
		if a == b {
			t.Errorf("%s gives the same name %s", what, a)
		}
	}
	if len(a) != len("c-")+5 {
		t.Errorf("name %s does not end in 5 hex digits", a)
	}
}
