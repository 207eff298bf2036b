package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// primaryOf and replicasOf return nodes of a settled world.
func (w *world) primaryOf(shard int32) *plan.Node {
	for i := range w.State.Nodes {
		if n := &w.State.Nodes[i]; n.Position.Shard == shard && w.Servers[n.Name].Primary == "" {
			return n
		}
	}
	w.t.Fatalf("shard %d has no primary", shard)
	return nil
}

func (w *world) replicasOf(shard int32) []*plan.Node {
	var out []*plan.Node
	for i := range w.State.Nodes {
		if n := &w.State.Nodes[i]; n.Position.Shard == shard && w.Servers[n.Name].Primary != "" {
			out = append(out, n)
		}
	}
	return out
}

func kinds(d plan.Decision) []plan.Kind {
	var out []plan.Kind
	for _, a := range d.Actions {
		out = append(out, a.Kind)
	}
	return out
}

func only(t *testing.T, d plan.Decision) plan.Action {
	t.Helper()
	if len(d.Actions) != 1 {
		t.Fatalf("want one action, got %v, waiting %q", kinds(d), d.Waiting)
	}
	return d.Actions[0]
}

func TestAPrimaryWhoseContainerEndedIsFollowedAtOnceByForce(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.settle()
	primary, replicas := w.primaryOf(1), w.replicasOf(1)
	w.Servers[replicas[0].Name].Offset, w.Servers[replicas[1].Name].Offset = 10, 20
	primary.Pod, primary.Detail = plan.PodTerminated, "container ended with exit code 137"
	a := only(t, plan.Next(w.Observe()))
	if a.Kind != plan.Failover || a.Mode != plan.Force || a.Node != replicas[1].Name {
		t.Errorf("want FORCE by the replica that is ahead, got %+v", a)
	}
	if !strings.Contains(a.Reason, primary.Name) || !strings.Contains(a.Reason, "137") {
		t.Errorf("reason %q", a.Reason)
	}
	s := w.Observe()
	s.Failovers = map[int32]time.Duration{1: time.Second}
	for _, again := range plan.Next(s).Actions {
		if again.Kind == plan.Failover {
			t.Error("a second failover is asked for while the first may be under way")
		}
	}
}

func TestAPrimaryThatIsOnlyOutOfReachIsLeftToTheElection(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary := w.primaryOf(0)
	for what, change := range map[string]func(){
		"no answer":   func() { primary.Silent = time.Minute },
		"no pod":      func() { primary.Pod = plan.PodGone },
		"terminating": func() { primary.Terminating, primary.TerminatingFor = true, 2*time.Second },
	} {
		before := *primary
		change()
		s := w.Observe()
		s.Replies = slices.DeleteFunc(s.Replies, func(r reply) bool { return r.Node == primary.Name })
		for _, a := range plan.Next(s).Actions {
			if a.Kind == plan.Failover {
				t.Errorf("%s: %s is sent", what, a.Mode)
			}
		}
		*primary = before
	}
}

// F-01, F-03
func TestTakeoverOnlyWithoutAMajority(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	for _, shard := range []int32{0, 1} {
		w.primaryOf(shard).Pod = plan.PodTerminated
	}
	d := plan.Next(w.Observe())
	if len(d.Actions) != 2 {
		t.Fatalf("want two takeovers, got %+v", d)
	}
	for _, a := range d.Actions {
		if a.Kind != plan.Failover || a.Mode != plan.Takeover {
			t.Errorf("want TAKEOVER, got %s %s", a.Kind, a.Mode)
		}
	}
}

func TestWithoutAMajorityASilentPrimaryIsFollowedOnlyOnceEverybodySuspectsIt(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.settle()
	primary := w.primaryOf(0)
	primary.Pod = plan.PodGone
	s := w.Observe()
	if a := only(t, plan.Next(s)); a.Kind != plan.Failover || a.Mode != plan.Takeover {
		t.Errorf("want TAKEOVER, got %+v", a)
	}
	for i := range s.Replies {
		for j := range s.Replies[i].Members {
			s.Replies[i].Members[j].Failed = false
		}
	}
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.Failover {
			t.Error("a takeover although nobody suspects the primary")
		}
	}
}

// U-03
func TestAnUnsyncedReplicaIsNeverPromoted(t *testing.T) {
	for what, spoil := range map[string]func(n *plan.Node, r *reply){
		"never in sync":         func(n *plan.Node, _ *reply) { n.InSync = false },
		"sync in progress":      func(_ *plan.Node, r *reply) { r.Replication.SyncInProgress = true },
		"never had a link (-1)": func(_ *plan.Node, r *reply) { r.Replication.LinkDownSeconds = -1 },
	} {
		w := newWorld(t, 3, 1)
		w.settle()
		w.primaryOf(0).Pod = plan.PodTerminated
		replica := w.replicasOf(0)[0].Name
		s := w.Observe()
		for i := range s.Replies {
			if s.Replies[i].Node == replica {
				spoil(w.node(replica), &s.Replies[i])
			}
		}
		s.Nodes = w.State.Nodes
		for _, a := range plan.Next(s).Actions {
			if a.Kind == plan.Failover {
				t.Errorf("%s: the replica is promoted", what)
			}
		}
	}
}

// F-07
func TestAPrimaryThatIsToldToStopHandsOverInTheFirstSecond(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary := w.primaryOf(2)
	primary.Terminating = true
	if a := only(t, plan.Next(w.Observe())); a.Kind != plan.Failover || a.Mode != plan.Graceful || a.Target != primary.Name {
		t.Errorf("want a graceful failover from %s, got %+v", primary.Name, a)
	}
	primary.TerminatingFor = 1500 * time.Millisecond
	for _, a := range plan.Next(w.Observe()).Actions {
		if a.Kind == plan.Failover {
			t.Error("a failover is asked for that may meet the server's own")
		}
	}
}

func TestALostShardGetsAnEmptyPrimaryOnlyOnceNoCopyCanBeAlive(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary, replica := w.primaryOf(1), w.replicasOf(1)[0]
	lost := w.Servers[primary.Name].Slots
	primary.Pod, replica.Pod = plan.PodTerminated, plan.PodGone
	for range 30 {
		d := plan.Next(w.Observe())
		for _, a := range d.Actions {
			if a.Kind == plan.ReplaceLost || a.Kind == plan.AssignSlots {
				t.Fatalf("%s while %s may be alive", a.Kind, replica.Name)
			}
			w.do(a)
		}
	}
	if awaited := plan.AwaitedCopies(w.Observe()); len(awaited) != 1 || !strings.Contains(awaited[0], replica.Name) {
		t.Errorf("awaited copies %v, want %s", awaited, replica.Name)
	}
	w.node(replica.Name).HostGone = true
	w.settle()
	w.check(3, 1)
	if got := w.Servers[w.primaryOf(1).Name]; !got.Slots.Equal(lost) || got.Epoch < 1000 {
		t.Errorf("the new primary owns %s with epoch %d, want %s with the highest", got.Slots, got.Epoch, lost)
	}
}

func TestAnAcknowledgedLossIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.primaryOf(1).Pod = plan.PodGone
	for range 30 {
		for _, a := range plan.Next(w.Observe()).Actions {
			w.do(a)
		}
	}
	w.State.LossAccepted = true
	w.settle()
	w.check(3, 0)
}

//
func TestAllNodesLostAtOnceFormAnEmptyClusterAgain(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	for i := range w.State.Nodes {
		w.State.Nodes[i].Pod, w.State.Nodes[i].HostGone = plan.PodGone, true
	}
	w.settle()
	w.check(3, 1)
	for name, s := range w.Servers {
		for id := range s.Knows {
			if w.ByID(id) == nil {
				t.Errorf("node %s lists member %s, which is gone", name, id)
			}
		}
	}
}
