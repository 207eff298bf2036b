package ideal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan/ideal"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

func target(shards, replicas int32) v1alpha1.TargetTopology {
	return v1alpha1.TargetTopology{Shards: shards, ReplicasPerShard: replicas}
}

// complete returns the state of a cluster that is as wished.
func complete(t *testing.T, shards, replicas int32) plan.State {
	t.Helper()
	f := ideal.Steps(ideal.New("c", target(shards, replicas)).Observe())
	if f.Waiting != "" {
		t.Fatalf("a new cluster is not completed: %s", f.Waiting)
	}
	return f.End
}

func count(f ideal.Forecast, kind plan.Kind) int {
	n := 0
	for _, a := range f.Steps {
		if a.Kind == kind {
			n++
		}
	}
	return n
}

func primaryOf(t *testing.T, s plan.State, shard int32) *plan.Node {
	t.Helper()
	name, ok := plan.Primary(s, shard)
	for i := range s.Nodes {
		if ok && s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	t.Fatalf("shard %d has no primary", shard)
	return nil
}

func TestTheForecastOfAClusterAsWishedIsEmpty(t *testing.T) {
	s := complete(t, 3, 1)
	if f := ideal.Steps(s); len(f.Steps) != 0 || f.Waiting != "" || s.Creating {
		t.Errorf("forecast %+v, waiting %q, creating %v", f.Steps, f.Waiting, s.Creating)
	}
}

func TestTheForecastOfAScaleOutMovesAsManySlotsAsEvennessNeeds(t *testing.T) {
	s := complete(t, 3, 1)
	s.Target = target(4, 1)
	f := ideal.Steps(s)
	moved := 0
	for _, a := range f.Steps {
		moved += a.Slots.Len()
	}
	if moved != 4096 || count(f, plan.CreateNode) != 2 || count(f, plan.DeleteNode) != 0 || f.Waiting != "" {
		t.Errorf("%d slots moved, %d nodes created, %d deleted, waiting %q", moved, count(f, plan.CreateNode), count(f, plan.DeleteNode), f.Waiting)
	}
	if again := ideal.Steps(f.End); len(again.Steps) != 0 {
		t.Errorf("the end is not the end: %+v", again.Steps)
	}
}

func TestTheForecastOfARollReplacesEveryNodeWithOneFailoverAShard(t *testing.T) {
	s := complete(t, 3, 1)
	for i := range s.Nodes {
		s.Nodes[i].Outdated = "image a is to be b"
	}
	f := ideal.Steps(s)
	if count(f, plan.CreateNode) != 6 || count(f, plan.DeleteNode) != 6 || count(f, plan.Failover) != 3 {
		t.Errorf("%d created, %d deleted, %d failovers", count(f, plan.CreateNode), count(f, plan.DeleteNode), count(f, plan.Failover))
	}
}

// A forecast from what was observed is what the planner does in that very world.
func TestAForecastFromAnyMomentIsWhatTheWorldThenDoes(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 5))
		w := ideal.New("c", target(1+random.Int32N(4), random.Int32N(3)))
		for range random.IntN(12) {
			actions := plan.Next(w.Observe()).Actions
			for _, a := range actions[:random.IntN(len(actions)+1)] {
				if err := w.Do(a); err != nil {
					t.Fatal(err)
				}
			}
		}
		f := ideal.Steps(w.Observe())
		if f.Waiting != "" {
			t.Fatalf("seed %d: waiting %q", seed, f.Waiting)
		}
		var done []plan.Action
		for {
			d := plan.Next(w.Observe())
			if d.Complete {
				break
			}
			for _, a := range d.Actions {
				if err := w.Do(a); err != nil {
					t.Fatal(err)
				}
				done = append(done, a)
			}
		}
		if !reflect.DeepEqual(kindsOf(f.Steps), kindsOf(done)) {
			t.Fatalf("seed %d: forecast %v, done %v", seed, kindsOf(f.Steps), kindsOf(done))
		}
	}
}

// kindsOf leaves out IDs, which two worlds give otherwise to nodes that they make.
func kindsOf(steps []plan.Action) []string {
	var out []string
	for _, a := range steps {
		out = append(out, strings.Join([]string{string(a.Kind), a.Node, a.Target, a.Slots.String()}, " "))
	}
	return out
}

func TestAForecastAssumesThatPodsStartAndCopiesEnd(t *testing.T) {
	s := complete(t, 1, 1)
	s.Target = target(1, 2)
	f := ideal.Steps(s)
	fresh := f.Steps[0]
	s.Nodes = append(s.Nodes, plan.Node{Name: fresh.Node, Position: fresh.Position, Lifecycle: v1alpha1.LifecycleJoining, Pod: plan.PodPending})
	f = ideal.Steps(s)
	if f.Waiting != "" || count(f, plan.CreateNode) != 0 || count(f, plan.Activate) != 1 {
		t.Errorf("waiting %q, steps %v", f.Waiting, kindsOf(f.Steps))
	}
	syncing := f.End
	for i := range syncing.Replies {
		if r := &syncing.Replies[i]; r.Node == fresh.Node {
			r.Replication.SyncInProgress, r.Replication.LinkUp = true, false
		}
	}
	if d := plan.Next(syncing); d.Waiting == "" {
		t.Fatalf("the planner does not wait for the copy: %+v", d)
	}
	if f = ideal.Steps(syncing); f.Waiting != "" {
		t.Errorf("waiting %q", f.Waiting)
	}
}

func TestAForecastReplacesTheDeadAndLeavesAnElectionToTheServers(t *testing.T) {
	for what, c := range map[string]struct {
		change    func(*plan.Node)
		failovers int
	}{
		"its container ended":  {func(n *plan.Node) { n.Pod = plan.PodTerminated }, 1},
		"its pod is gone":      {func(n *plan.Node) { n.Pod = plan.PodGone }, 0},
		"it was told to stop":  {func(n *plan.Node) { n.Terminating = true }, 1},
		"it is about to stop":  {func(n *plan.Node) { n.Terminating, n.TerminatingFor = true, 2*time.Second }, 0},
		"and one was asked of": {func(n *plan.Node) { n.Pod = plan.PodTerminated }, 1},
	} {
		s := complete(t, 3, 1)
		dead := primaryOf(t, s, 1)
		c.change(dead)
		if what == "and one was asked of" {
			s.Failovers = map[int32]time.Duration{1: 0}
		}
		f := ideal.Steps(s)
		if f.Waiting != "" || count(f, plan.CreateNode) != 1 || count(f, plan.DeleteNode) != 1 || count(f, plan.Failover) > c.failovers {
			t.Errorf("%s: waiting %q, steps %v", what, f.Waiting, kindsOf(f.Steps))
		}
		if len(f.End.Nodes) != 6 {
			t.Errorf("%s: %d nodes at the end", what, len(f.End.Nodes))
		}
	}
}

func TestAForecastEndsWhereOnlyTheUserCanHelp(t *testing.T) {
	s := complete(t, 3, 0)
	gone := primaryOf(t, s, 1)
	gone.Pod = plan.PodGone
	f := ideal.Steps(s)
	if f.Waiting == "" || count(f, plan.ReplaceLost) != 0 {
		t.Errorf("waiting %q, steps %v", f.Waiting, kindsOf(f.Steps))
	}
	s.LossAccepted = true
	if f = ideal.Steps(s); f.Waiting != "" || count(f, plan.ReplaceLost) != 1 {
		t.Errorf("with the loss accepted: waiting %q, steps %v", f.Waiting, kindsOf(f.Steps))
	}
}

func TestASilentNodeStaysSilent(t *testing.T) {
	s := complete(t, 3, 1)
	replica := s.Replies[1]
	for _, r := range s.Replies {
		if r.Replication.Role == topology.RoleReplica {
			replica = r
		}
	}
	for i := range s.Replies {
		if s.Replies[i].Node == replica.Node {
			s.Replies[i] = topology.Reply{Node: replica.Node, PodIP: replica.PodIP, ID: replica.ID, Err: errors.New("timeout")}
		}
	}
	if f := ideal.Steps(s); !strings.Contains(f.Waiting, replica.Node) {
		t.Errorf("waiting %q, want it to name %s", f.Waiting, replica.Node)
	}
}

func TestAForecastChangesNothingOfTheStateItStartsFrom(t *testing.T) {
	s := complete(t, 3, 1)
	s.Holds = map[plan.Position]plan.Hold{{Shard: 1}: {Remaining: time.Minute, Reason: "it died early"}}
	s.Target = target(2, 2)
	before := fmt.Sprintf("%+v", s)
	ideal.Steps(s)
	if after := fmt.Sprintf("%+v", s); before != after {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}
