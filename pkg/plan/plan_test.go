package plan_test

import (
	"cmp"
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

// untilWaiting carries out decisions until there is nothing to do but to wait, and
// returns which nodes got slots.
func (w *world) untilWaiting(observe func() plan.State) (plan.Decision, []string) {
	w.t.Helper()
	var owners []string
	for range 10 {
		d := plan.Next(observe())
		if len(d.Actions) == 0 {
			return d, owners
		}
		for _, a := range d.Actions {
			if a.Kind == plan.AssignSlots {
				owners = append(owners, a.Node)
			}
			w.do(a)
		}
	}
	w.t.Fatal("the manager never waits")
	return plan.Decision{}, nil
}

func TestSlotsAreAssignedWhileNodesAreStillStarting(t *testing.T) {
	tests := map[string]struct {
		missing []int // of nodes 0 and 1 in shard 0, 2 and 3 in shard 1
		change  func(*plan.State, int)
		want    []int
	}{
		"a replica of each shard starts":      {[]int{1, 3}, pending(""), []int{0, 2}},
		"the first node of a shard starts":    {[]int{0}, pending(""), []int{1, 2}},
		"a shard starts as a whole":           {[]int{2, 3}, pending(""), []int{0}},
		"a node has no room":                  {[]int{3}, pending("Unschedulable: no nodes"), nil},
		"a node runs and doesn't answer yet":  {[]int{0}, silent, []int{2}},
		"nothing is missing but introduction": {nil, nil, []int{0, 2}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, 1)
			for _, a := range plan.Next(w.Observe()).Actions {
				w.do(a)
			}
			positions := slices.SortedFunc(slices.Values(w.State.Nodes), func(a, b plan.Node) int {
				return cmp.Or(cmp.Compare(a.Position.Shard, b.Position.Shard), cmp.Compare(a.Position.Index, b.Position.Index))
			})
			_, owners := w.untilWaiting(func() plan.State {
				s := w.Observe()
				s.Nodes = slices.Clone(s.Nodes)
				for _, i := range tt.missing {
					tt.change(&s, slices.IndexFunc(s.Nodes, func(n plan.Node) bool { return n.Name == positions[i].Name }))
				}
				return s
			})
			var want []string
			for _, i := range tt.want {
				want = append(want, positions[i].Name)
			}
			if !slices.Equal(owners, want) {
				t.Errorf("slots went to %v, want %v", owners, want)
			}
			w.settle()
			w.check(2, 1)
		})
	}
}

// pending takes a node's container back to before its start.
func pending(detail string) func(*plan.State, int) {
	return func(s *plan.State, i int) {
		s.Nodes[i].Pod, s.Nodes[i].PodIP, s.Nodes[i].Detail = plan.PodPending, "", detail
		s.Replies = slices.DeleteFunc(s.Replies, func(r topology.Reply) bool { return r.Node == s.Nodes[i].Name })
	}
}

func silent(s *plan.State, i int) {
	for j := range s.Replies {
		if s.Replies[j].Node == s.Nodes[i].Name {
			s.Replies[j] = topology.Reply{Node: s.Nodes[i].Name, Err: errors.New("dial: timeout")}
		}
	}
}

func TestWhatANewClusterWaitsForIsNamed(t *testing.T) {
	tests := map[string]struct {
		change func(*plan.State, int)
		why    string
	}{
		"a pod that is pending":       {pending("Unschedulable: no nodes"), "Unschedulable"},
		"a node that does not answer": {silent, "timeout"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3, 1)
			for _, a := range plan.Next(w.Observe()).Actions {
				w.do(a)
			}
			d, _ := w.untilWaiting(func() plan.State {
				s := w.Observe()
				s.Nodes = slices.Clone(s.Nodes)
				tt.change(&s, 4)
				return s
			})
			if name := w.State.Nodes[4].Name; !strings.Contains(d.Waiting, name) || !strings.Contains(d.Waiting, tt.why) {
				t.Errorf("want %s and why in %q", name, d.Waiting)
			}
		})
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
	for _, lifecycle := range []v1alpha1.Lifecycle{v1alpha1.LifecycleActive, v1alpha1.LifecycleJoining} {
		w := newWorld(t, 3, 1)
		w.settle()
		unknown := w.replicasOf(2)[0]
		unknown.NodeID, unknown.Lifecycle = "", lifecycle
		s := w.Observe()
		s.Replies = slices.DeleteFunc(s.Replies, func(r topology.Reply) bool { return r.Node == unknown.Name })
		for _, a := range plan.Next(s).Actions {
			if a.Kind == plan.Forget {
				t.Errorf("%s: %s %s, which may be the node that did not answer", lifecycle, a.Kind, a.TargetID)
			}
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
