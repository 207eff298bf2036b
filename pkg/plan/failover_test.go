package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
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
	primary.Pod, primary.Detail = plan.PodTerminated, "container ended with exit code 137"
	var a plan.Action
	for i, ahead := range replicas {
		w.Servers[ahead.Name].Offset, w.Servers[replicas[1-i].Name].Offset = 20, 10
		a = only(t, plan.Next(w.Observe()))
		if a.Kind != plan.Failover || a.Mode != plan.Force || a.Node != ahead.Name {
			t.Errorf("want FORCE by %s, which is ahead, got %+v", ahead.Name, a)
		}
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
	for what, c := range map[string]struct {
		shards int32
		dead   []int32
		change func(*world, plan.State)
	}{
		"two of three are dead": {3, []int32{0, 1}, nil},
		"one of two is dead":    {2, []int32{0}, nil},
		"two are dead, and nobody has noticed": {3, []int32{0, 1}, func(_ *world, s plan.State) {
			flag(s, func(string, *topology.Member) bool { return true }, false)
		}},
		"one is dead and one is cut off": {3, []int32{0}, func(w *world, s plan.State) {
			alone := w.primaryOf(1).Name
			flag(s, func(viewer string, row *topology.Member) bool { return viewer == alone && !row.Myself }, true)
		}},
	} {
		w := newWorld(t, c.shards, 1)
		w.settle()
		for _, shard := range c.dead {
			w.primaryOf(shard).Pod = plan.PodTerminated
		}
		s := w.Observe()
		if c.change != nil {
			c.change(w, s)
		}
		d := plan.Next(s)
		if len(d.Actions) != len(c.dead) {
			t.Errorf("%s: want %d takeovers, got %+v", what, len(c.dead), d)
		}
		for _, a := range d.Actions {
			if a.Kind != plan.Failover || a.Mode != plan.Takeover {
				t.Errorf("%s: want TAKEOVER, got %s %s", what, a.Kind, a.Mode)
			}
		}
	}
}

// flag marks rows of the servers' tables as failed or as well.
func flag(s plan.State, which func(viewer string, row *topology.Member) bool, failed bool) {
	for i := range s.Replies {
		for j := range s.Replies[i].Members {
			if m := &s.Replies[i].Members[j]; which(s.Replies[i].Node, m) {
				m.Failed, m.LinkUp = failed, !failed
			}
		}
	}
}

// A primary that its replica still follows serves, whoever else suspects it, and one
// that was silent for a moment may answer the next time.
func TestWithoutAMajorityNobodyTakesOverFromAPrimaryThatMayServe(t *testing.T) {
	for what, c := range map[string]struct {
		silent time.Duration
		linkUp bool
		takes  bool
	}{
		"silent for long":                     {time.Minute, false, true},
		"silent for a moment":                 {2 * time.Second, false, false},
		"silent for long, and still followed": {time.Minute, true, false},
	} {
		w := newWorld(t, 1, 2)
		w.settle()
		primary := w.primaryOf(0)
		primary.Silent = c.silent
		s := w.silence(w.Observe(), primary.Name, true)
		for _, n := range w.replicasOf(0) {
			r := &answer(t, s, n.Name).Replication
			r.LinkUp, r.HasLinkDownSeconds, r.LinkDownSeconds = c.linkUp, !c.linkUp, 10
		}
		takes := slices.ContainsFunc(plan.Next(s).Actions, func(a plan.Action) bool { return a.Kind == plan.Failover })
		if takes != c.takes {
			t.Errorf("%s: takeover %v, want %v", what, takes, c.takes)
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
	broken := w.Observe()
	r := &answer(t, broken, w.replicasOf(2)[0].Name).Replication
	r.LinkUp, r.HasLinkDownSeconds, r.LinkDownSeconds = false, true, 3
	for _, a := range plan.Next(broken).Actions {
		if a.Kind == plan.Failover {
			t.Error("it hands over to a replica that does not follow it right now")
		}
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

func TestAHandoverToANodeThatIsNotInSyncIsRefused(t *testing.T) {
	for what, spoil := range map[string]func(*plan.Node, *reply){
		"its gate is closed": func(n *plan.Node, _ *reply) { n.InSync = false },
		"its link is down":   func(_ *plan.Node, r *reply) { r.Replication.LinkUp = false },
		"it copies the data": func(_ *plan.Node, r *reply) { r.Replication.SyncInProgress = true },
	} {
		w := newWorld(t, 2, 1)
		w.settle()
		replica := w.replicasOf(1)[0]
		s := w.Observe()
		spoil(replica, answer(t, s, replica.Name))
		if a, err := plan.Handover(s, 1, replica.Name); err == nil {
			t.Errorf("%s: %+v", what, a)
		}
	}
}
