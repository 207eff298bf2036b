package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// until acts until an action of a kind is decided, and returns the batch without
// carrying it out.
func (w *world) until(kind plan.Kind) []plan.Action {
	w.t.Helper()
	for range 200 {
		d := plan.Next(w.Observe())
		if len(d.Actions) == 0 {
			w.t.Fatalf("no %s: %+v", kind, d)
		}
		if d.Actions[0].Kind == kind {
			return d.Actions
		}
		for _, a := range d.Actions {
			w.do(a)
		}
	}
	w.t.Fatalf("no %s after 200 steps", kind)
	return nil
}

// S-07
func TestPodsThatStayPendingDoNotKeepTheirShardFromGoing(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	w.State.Target.Shards = 4
	for _, a := range w.until(plan.CreateNode) {
		w.do(a)
		w.node(a.Node).Pod, w.node(a.Node).Detail = plan.PodPending, "Unschedulable"
		delete(w.Servers, a.Node)
	}
	if d := plan.Next(w.Observe()); d.Waiting == "" || !strings.Contains(d.Waiting, "Unschedulable") {
		t.Errorf("with pods that are pending: %+v", d)
	}
	w.State.Target.Shards = 3
	w.settle()
	w.check(3, 1)
}

// S-09
func TestAMoveIsPlannedAnewFromThePromotedReplica(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	w.State.Target.Shards = 4
	move := w.until(plan.MoveSlots)[0]
	source, heir := w.node(move.Node), w.replicasOf(w.node(move.Node).Position.Shard)[0].Name
	w.kill(source.Name)
	if a := only(t, plan.Next(w.Observe())); a.Kind != plan.Failover || a.Node != heir || a.Mode != plan.Force {
		t.Fatalf("want %s to follow %s at once, got %+v", heir, source.Name, a)
	}
	w.promote(heir)
	for _, again := range w.until(plan.MoveSlots) {
		if again.Target == move.Target && again.Slots.Equal(move.Slots) {
			if again.Node != heir {
				t.Errorf("slots %s move from %s, want %s", again.Slots, again.Node, heir)
			}
			w.settle()
			w.check(4, 1)
			return
		}
	}
	t.Errorf("slots %s are not moved any more", move.Slots)
}

// F-10: with its kubelet dead a pod stays Terminating for ever.
func TestAPodThatNeverEndsIsReplacedAndGetsNoCommand(t *testing.T) {
	for _, primary := range []bool{true, false} {
		w := newWorld(t, 3, 1)
		w.settle()
		stuck := w.replicasOf(1)[0]
		if primary {
			stuck = w.primaryOf(1)
			w.promote(w.replicasOf(1)[0].Name) // the servers elected it
		}
		stuck.Terminating, stuck.TerminatingFor, stuck.Silent = true, 10*time.Minute, 10*time.Minute
		name, id := stuck.Name, stuck.NodeID
		replaced := false
		for range 50 {
			d := plan.Next(w.Observe())
			if len(d.Actions) == 0 {
				break
			}
			for _, a := range d.Actions {
				replaced = replaced || a.Kind == plan.CreateNode && a.Predecessor == name
				if a.Node == name && a.Kind != plan.DeleteNode || a.Target == name || a.TargetID == id && a.Kind != plan.Forget {
					t.Errorf("%s %s %s concerns the pod that is stuck: %s", a.Kind, a.Node, a.Target, a.Reason)
				}
				w.do(a)
			}
		}
		if !replaced {
			t.Errorf("%s was not replaced", name)
		}
		w.check(3, 1)
	}
}

// a member of another cluster is forgotten while all slots have an owner of
// this one, by its own word; when it has taken some nothing is done to slots until
// somebody has looked at it.
func TestAMemberOfAnotherClusterStopsSlotsFromMoving(t *testing.T) {
	const foreign = "ffffffffffffffffffffffffffffffffffffffff"
	theirs := slots.FromRanges(slots.Range{Start: 0, End: 99})
	for what, taken := range map[string]bool{"it only claims slots": false, "it has taken slots": true} {
		w := newWorld(t, 3, 1)
		w.settle()
		w.State.Target.Shards = 4
		w.until(plan.MoveSlots)
		if taken {
			owner := w.Servers[w.primaryOf(0).Name]
			owner.Slots = owner.Slots.Minus(theirs)
		}
		s := w.Observe()
		for i := range s.Replies {
			s.Replies[i].Members = append(s.Replies[i].Members, topology.Member{
				ID: foreign, IP: "10.9.9.9", Port: 6379, BusPort: 16379, Role: topology.RolePrimary,
				ConfigEpoch: 1 << 20, LinkUp: true, Slots: theirs,
			})
		}
		d := plan.Next(s)
		forgotten := 0
		for _, a := range d.Actions {
			switch {
			case a.Kind == plan.Forget && a.TargetID == foreign:
				forgotten++
			case a.Kind == plan.MoveSlots, a.Kind == plan.ReplaceLost, a.Kind == plan.AssignSlots, a.TargetID == foreign, a.TargetIP == "10.9.9.9":
				t.Errorf("%s: %s %s: %s", what, a.Kind, a.Node, a.Reason)
			}
		}
		if all := len(s.Replies); taken && forgotten > 0 || !taken && forgotten != all {
			t.Errorf("%s: %d of %d nodes forget it", what, forgotten, all)
		}
		if taken && !strings.Contains(d.Waiting, foreign) {
			t.Errorf("%s, and nobody is told of it: %q", what, d.Waiting)
		}
	}
}

// a change of the shape and one of what nodes are like, in one edit.
func TestAScaleAndARollThatAreAskedForTogetherGoOneAfterTheOther(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	old := map[string]bool{}
	for i := range w.State.Nodes {
		w.State.Nodes[i].Outdated = "memory 1Gi is to be 2Gi"
		old[w.State.Nodes[i].Name] = true
	}
	w.State.Target.Shards = 4
	rolling, moved := false, false
	for range 400 {
		d := plan.Next(w.Observe())
		if d.Complete {
			break
		}
		if len(d.Actions) == 0 {
			t.Fatalf("stuck: %s", d.Waiting)
		}
		for _, a := range d.Actions {
			rolling = rolling || a.Kind == plan.CreateNode && old[a.Predecessor]
			moved = moved || a.Kind == plan.MoveSlots
			if a.Kind == plan.MoveSlots && rolling {
				t.Fatalf("slots move while nodes are replaced: %s", a.Reason)
			}
			w.do(a)
		}
	}
	if !rolling || !moved {
		t.Errorf("rolled %v, moved %v", rolling, moved)
	}
	for _, n := range w.State.Nodes {
		if old[n.Name] {
			t.Errorf("node %s was not replaced", n.Name)
		}
	}
	w.check(4, 1)
}

// H-07: a cache that is behind must not let a second disruption pass.
func TestWhatDisruptsIsDecidedFromTheAPIServer(t *testing.T) {
	for kind, want := range map[plan.Kind]bool{
		plan.CreateNode: true, plan.DeleteNode: true, plan.Forget: true, plan.Leave: true, plan.MoveSlots: true,
		plan.ReplaceLost: true, plan.AssignSlots: true, plan.Introduce: false, plan.Replicate: false,
		plan.Activate: false, plan.Failover: false, plan.SetConfigEpoch: false,
	} {
		if got := (plan.Decision{Actions: []plan.Action{{Kind: kind}}}).NeedsLiveView(); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

// A source deletes what it gave away before it serves anybody again, so what it gives
// away at once is bounded by its keys; so is how often it is copied for that.
func TestSlotsMoveInMigrationsOfFewKeys(t *testing.T) {
	for keys, want := range map[int64]int{0: 1, 4096 * 2: 1, 4096*2 + 1: 2, 200_000: 25, 100_000_000: 32} {
		w := newWorld(t, 1, 0)
		w.settle()
		w.Servers[w.State.Nodes[0].Name].Keys = keys
		w.State.Target.Shards = 2
		if a := w.until(plan.MoveSlots)[0]; a.Jobs != want || a.Slots.Len() != slots.Count/2 {
			t.Errorf("half of %d keys move in %d migrations of %d slots, want %d", keys, a.Jobs, a.Slots.Len(), want)
		}
	}
}

// The pod of a shard that went may take long to end, and the shard is wanted again.
func TestANewNodeNeverWaitsForAPodOfItsName(t *testing.T) {
	w := newWorld(t, 1, 0)
	first := w.until(plan.CreateNode)[0]
	w.State.Former = map[string]bool{first.Node: true}
	again := w.until(plan.CreateNode)[0]
	if again.Node == first.Node || again.Position != first.Position {
		t.Errorf("%+v while a pod has the name %s", again, first.Node)
	}
}

// One move is several migrations, most of which wait their turn.
func TestWhatIsOnItsWayIsCountedOverAllMigrations(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.settle()
	from, to := w.primaryOf(0), w.primaryOf(1)
	s := w.Observe()
	job := func(start, end uint16, state string) topology.Migration {
		return topology.Migration{
			Export: true, SourceID: w.Servers[from.Name].ID, TargetID: w.Servers[to.Name].ID,
			Slots: slots.FromRanges(slots.Range{Start: start, End: end}), State: state,
		}
	}
	answer(t, s, from.Name).Migrations = []topology.Migration{
		job(20, 29, "waiting-to-snapshot"), job(10, 19, "snapshotting"), job(0, 9, "success"),
	}
	if d := plan.Next(s); d.Waiting != "20 slots are on their way from node "+from.Name {
		t.Errorf("waiting for %q", d.Waiting)
	}
}
