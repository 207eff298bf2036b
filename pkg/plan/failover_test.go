package plan

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// primaryOf and replicasOf return nodes of a settled world.
func (w *world) primaryOf(shard int32) *Node {
	for i := range w.state.Nodes {
		if n := &w.state.Nodes[i]; n.Position.Shard == shard && w.servers[n.Name].primary == "" {
			return n
		}
	}
	w.t.Fatalf("shard %d has no primary", shard)
	return nil
}

func (w *world) replicasOf(shard int32) []*Node {
	var out []*Node
	for i := range w.state.Nodes {
		if n := &w.state.Nodes[i]; n.Position.Shard == shard && w.servers[n.Name].primary != "" {
			out = append(out, n)
		}
	}
	return out
}

func kinds(d Decision) []Kind {
	var out []Kind
	for _, a := range d.Actions {
		out = append(out, a.Kind)
	}
	return out
}

func only(t *testing.T, d Decision) Action {
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
	w.servers[replicas[0].Name].offset, w.servers[replicas[1].Name].offset = 10, 20
	primary.Pod, primary.Detail = PodTerminated, "container ended with exit code 137"
	a := only(t, Next(w.observe()))
	if a.Kind != Failover || a.Mode != Force || a.Node != replicas[1].Name {
		t.Errorf("want FORCE by the replica that is ahead, got %+v", a)
	}
	if !strings.Contains(a.Reason, primary.Name) || !strings.Contains(a.Reason, "137") {
		t.Errorf("reason %q", a.Reason)
	}
	s := w.observe()
	s.Failovers = map[int32]time.Duration{1: time.Second}
	for _, again := range Next(s).Actions {
		if again.Kind == Failover {
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
		"no pod":      func() { primary.Pod = PodGone },
		"terminating": func() { primary.Terminating, primary.TerminatingFor = true, 2*time.Second },
	} {
		before := *primary
		change()
		s := w.observe()
		s.Replies = slices.DeleteFunc(s.Replies, func(r reply) bool { return r.Node == primary.Name })
		for _, a := range Next(s).Actions {
			if a.Kind == Failover {
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
		w.primaryOf(shard).Pod = PodTerminated
	}
	d := Next(w.observe())
	if len(d.Actions) != 2 {
		t.Fatalf("want two takeovers, got %+v", d)
	}
	for _, a := range d.Actions {
		if a.Kind != Failover || a.Mode != Takeover {
			t.Errorf("want TAKEOVER, got %s %s", a.Kind, a.Mode)
		}
	}
}

func TestWithoutAMajorityASilentPrimaryIsFollowedOnlyOnceEverybodySuspectsIt(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.settle()
	primary := w.primaryOf(0)
	primary.Pod = PodGone
	s := w.observe()
	if a := only(t, Next(s)); a.Kind != Failover || a.Mode != Takeover {
		t.Errorf("want TAKEOVER, got %+v", a)
	}
	for i := range s.Replies {
		for j := range s.Replies[i].Members {
			s.Replies[i].Members[j].Failed = false
		}
	}
	for _, a := range Next(s).Actions {
		if a.Kind == Failover {
			t.Error("a takeover although nobody suspects the primary")
		}
	}
}

func TestAnUnsyncedReplicaIsNeverPromoted(t *testing.T) {
	for what, spoil := range map[string]func(n *Node, r *reply){
		"never in sync":         func(n *Node, _ *reply) { n.InSync = false },
		"sync in progress":      func(_ *Node, r *reply) { r.Replication.SyncInProgress = true },
		"never had a link (-1)": func(_ *Node, r *reply) { r.Replication.LinkDownSeconds = -1 },
	} {
		w := newWorld(t, 3, 1)
		w.settle()
		w.primaryOf(0).Pod = PodTerminated
		replica := w.replicasOf(0)[0].Name
		s := w.observe()
		for i := range s.Replies {
			if s.Replies[i].Node == replica {
				spoil(w.node(replica), &s.Replies[i])
			}
		}
		s.Nodes = w.state.Nodes
		for _, a := range Next(s).Actions {
			if a.Kind == Failover {
				t.Errorf("%s: the replica is promoted", what)
			}
		}
	}
}

func TestAPrimaryThatIsToldToStopHandsOverInTheFirstSecond(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary := w.primaryOf(2)
	primary.Terminating = true
	if a := only(t, Next(w.observe())); a.Kind != Failover || a.Mode != Graceful || a.Target != primary.Name {
		t.Errorf("want a graceful failover from %s, got %+v", primary.Name, a)
	}
	primary.TerminatingFor = 1500 * time.Millisecond
	for _, a := range Next(w.observe()).Actions {
		if a.Kind == Failover {
			t.Error("a failover is asked for that may meet the server's own")
		}
	}
}

func TestALostShardGetsAnEmptyPrimaryOnlyOnceNoCopyCanBeAlive(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary, replica := w.primaryOf(1), w.replicasOf(1)[0]
	lost := w.servers[primary.Name].slots
	primary.Pod, replica.Pod = PodTerminated, PodGone
	for range 30 {
		d := Next(w.observe())
		for _, a := range d.Actions {
			if a.Kind == ReplaceLost || a.Kind == AssignSlots {
				t.Fatalf("%s while %s may be alive", a.Kind, replica.Name)
			}
			w.do(a)
		}
	}
	if awaited := AwaitedCopies(w.observe()); len(awaited) != 1 || !strings.Contains(awaited[0], replica.Name) {
		t.Errorf("awaited copies %v, want %s", awaited, replica.Name)
	}
	w.node(replica.Name).HostGone = true
	w.settle()
	w.check(3, 1)
	if got := w.servers[w.primaryOf(1).Name]; !got.slots.Equal(lost) || got.epoch < 1000 {
		t.Errorf("the new primary owns %s with epoch %d, want %s with the highest", got.slots, got.epoch, lost)
	}
}

func TestAnAcknowledgedLossIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.primaryOf(1).Pod = PodGone
	for range 30 {
		for _, a := range Next(w.observe()).Actions {
			w.do(a)
		}
	}
	w.state.LossAccepted = true
	w.settle()
	w.check(3, 0)
}

//
func TestAllNodesLostAtOnceFormAnEmptyClusterAgain(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	for i := range w.state.Nodes {
		w.state.Nodes[i].Pod, w.state.Nodes[i].HostGone = PodGone, true
	}
	w.settle()
	w.check(3, 1)
	for name, s := range w.servers {
		for id := range s.knows {
			if w.byID(id) == nil {
				t.Errorf("node %s lists member %s, which is gone", name, id)
			}
		}
	}
}
