package plan_test

import (
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// says changes what a node says of the slots of a member.
func (w *world) says(s plan.State, node, of string, owned slots.Set) {
	r := answer(w.t, s, node)
	for i := range r.Members {
		if r.Members[i].ID == w.Servers[of].ID {
			r.Members[i].Slots = owned
		}
	}
}

// A source that was asked after the slots had moved and a target that was asked
// before both deny them.
func TestSlotsThatChangeHandsBetweenTwoQuestionsAreNotLost(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	from, to := w.primaryOf(0).Name, w.primaryOf(1).Name
	moved := slots.FromRanges(slots.Range{Start: 0, End: 99})
	s := w.Observe()
	w.says(s, from, from, w.Servers[from].Slots.Minus(moved))
	w.says(s, from, to, w.Servers[to].Slots.Union(moved))
	if d := plan.Next(s); len(d.Actions) > 0 || d.Waiting == "" {
		t.Errorf("want to look again, got %v", kinds(d))
	}
}

func TestNobodyLeavesWhileSlotsAreOnTheirWay(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	last, first := w.primaryOf(2).Name, w.primaryOf(0).Name
	w.Servers[first].Slots, w.Servers[last].Slots = w.Servers[first].Slots.Union(w.Servers[last].Slots), slots.Set{}
	w.State.Target.Shards = 2
	s := w.Observe()
	s.Recorded = map[int32]slots.Set{}
	job := topology.Migration{
		Export: true, SourceID: w.Servers[first].ID, TargetID: w.Servers[last].ID,
		Slots: slots.FromRanges(slots.Range{Start: 0, End: 9}), State: "snapshotting",
	}
	answer(t, s, first).Migrations = []topology.Migration{job}
	d := plan.Next(s)
	for _, a := range d.Actions {
		if a.Kind == plan.Leave || a.Kind == plan.MoveSlots && (a.Node == first || a.Node == last) {
			t.Errorf("%s of %s meanwhile", a.Kind, a.Node)
		}
	}
	if len(d.Actions) == 0 && d.Waiting == "" {
		t.Error("nothing says what is waited for")
	}
	answer(t, s, first).Migrations[0].State = "success"
	if d := plan.Next(s); len(d.Actions) == 0 {
		t.Errorf("a job that is over is still waited for: %s", d.Waiting)
	}
}

func TestANodeThatWasToLeaveAndInheritedAShardStays(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary, replica := w.primaryOf(1), w.replicasOf(1)[0]
	replica.Lifecycle = v1alpha1.LifecycleLeaving
	w.promote(replica.Name)
	primary.Pod = plan.PodTerminated
	if a := only(t, plan.Next(w.Observe())); a.Kind != plan.Activate || a.Node != replica.Name {
		t.Errorf("want %s to stay, got %+v", replica.Name, a)
	}
}

func TestAShardThatIsToGoIsStillFailedOver(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	w.State.Target.Shards = 2
	w.primaryOf(2).Pod = plan.PodTerminated
	if a := only(t, plan.Next(w.Observe())); a.Kind != plan.Failover || a.Node != w.replicasOf(2)[0].Name {
		t.Errorf("want the data of the shard to be saved first, got %+v", a)
	}
}

func TestAMemberWhoseSlotsWereGivenAwayIsForgottenByThoseWhoMissedIt(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.settle()
	witness, heir := w.primaryOf(0).Name, w.primaryOf(1).Name
	s := w.Observe()
	r := answer(t, s, witness)
	old := r.Members[0]
	for _, m := range r.Members {
		if m.ID == w.Servers[heir].ID {
			old = m
		}
	}
	old.ID, old.ConfigEpoch, old.Failed, old.LinkUp = "0ld", 99, true, false
	w.says(s, witness, heir, slots.Set{})
	r.Members = append(r.Members, old)
	if a := only(t, plan.Next(s)); a.Kind != plan.Forget || a.Node != witness || a.TargetID != "0ld" {
		t.Errorf("want %s to forget the former owner, got %+v", witness, a)
	}
}

func TestAMemberWhoseNodeWasDeletedIsWaitedForWhileItServes(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	gone := w.primaryOf(1).Name
	s := w.Observe()
	s.Nodes, s.Replies = without(s, gone)
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.Forget || a.Kind == plan.ReplaceLost {
			t.Errorf("%s while %s serves", a.Kind, gone)
		}
	}
	if awaited := plan.AwaitedCopies(s); len(awaited) != 1 {
		t.Errorf("awaited copies %v", awaited)
	}
}

// without returns nodes and replies of a state but those of one node.
func without(s plan.State, name string) (nodes []plan.Node, replies []topology.Reply) {
	for _, n := range s.Nodes {
		if n.Name != name {
			nodes = append(nodes, n)
		}
	}
	for _, r := range s.Replies {
		if r.Node != name {
			replies = append(replies, r)
		}
	}
	return nodes, replies
}

func TestWhatIsWrittenDownFollowsTheSlots(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	dead := w.primaryOf(1)
	owned := w.Servers[dead.Name].Slots
	dead.Pod = plan.PodGone
	s := w.Observe()
	s.Recorded = map[int32]slots.Set{0: slots.All(), 7: slots.All()}
	got := plan.Records(s)
	if !got[1].Equal(owned) || !got[0].Intersect(owned).Empty() || !got[7].Empty() {
		t.Errorf("recorded %v, want shard 1 to have %s", got, owned)
	}
}

func TestALastCopyThatHangsIsNotDeletedUntilTheLossIsAccepted(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary, replica := w.primaryOf(1), w.replicasOf(1)[0]
	primary.Pod, replica.Silent = plan.PodTerminated, 2*time.Minute
	deleted := func() bool {
		for _, a := range plan.Next(w.silence(w.Observe(), replica.Name, true)).Actions {
			if a.Kind == plan.DeleteNode && a.Node == replica.Name {
				return true
			}
		}
		return false
	}
	if deleted() {
		t.Error("the last copy is deleted")
	}
	w.State.LossAccepted = true
	if !deleted() {
		t.Error("it stands in the way although its loss was accepted")
	}
}

func TestAManagerThatMostNodesDoNotAnswerDeletesNone(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle()
	s := w.Observe()
	for _, n := range []*plan.Node{w.replicasOf(0)[0], w.replicasOf(1)[0]} {
		n.Silent = 2 * time.Minute
		s = w.silence(s, n.Name, true)
	}
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.DeleteNode {
			t.Errorf("%s: %s", a.Node, a.Reason)
		}
	}
}

func TestAReplacementThatNeverStartedAndIsOutdatedGivesWay(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	w.kill(w.replicasOf(0)[0].Name)
	var a plan.Action
	for a.Kind != plan.CreateNode {
		for _, a = range plan.Next(w.Observe()).Actions {
			w.do(a)
		}
	}
	n := w.node(a.Node)
	n.Pod, n.Outdated = plan.PodPending, "image bad is to be good"
	if got := only(t, plan.Next(w.Observe())); got.Kind != plan.DeleteNode || got.Node != n.Name {
		t.Errorf("want the node with the bad image to go, got %+v", got)
	}
}

func TestAnEditDuringCreationTakesNoNodeThatRuns(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	w.State.Creating = true
	for i := range w.State.Nodes {
		w.State.Nodes[i].Lifecycle, w.State.Nodes[i].Outdated = v1alpha1.LifecycleJoining, "image"
	}
	for _, a := range plan.Next(w.Observe()).Actions {
		if a.Kind == plan.DeleteNode {
			t.Errorf("%s: %s", a.Node, a.Reason)
		}
	}
}

func TestALastCopyThatWasToLeaveIsTakenBack(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	replica := w.replicasOf(1)[0]
	w.State.Target.ReplicasPerShard = 0
	w.primaryOf(1).Pod = plan.PodTerminated
	s := w.Observe()
	w.node(replica.Name).Lifecycle = v1alpha1.LifecycleLeaving
	if a := only(t, plan.Next(s)); a.Kind != plan.Activate || a.Node != replica.Name {
		t.Errorf("want %s to stay, got %+v", replica.Name, a)
	}
}

func TestAReplicaOfANewShardWhosePrimaryDiedBeforeItHadSlotsGivesWay(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle()
	first, last := w.primaryOf(0), w.primaryOf(1)
	replica := w.replicasOf(1)[0]
	w.Servers[first.Name].Slots, w.Servers[last.Name].Slots = slots.All(), slots.Set{}
	w.State.Recorded = nil
	last.Pod = plan.PodTerminated
	if a := only(t, plan.Next(w.Observe())); a.Kind != plan.DeleteNode || a.Node != replica.Name {
		t.Errorf("want the copy of nothing to go, got %+v", a)
	}
}

func TestOfTwoGoodNodesInOnePositionOneLeaves(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle()
	double := w.replicasOf(1)[0].Position
	w.do(plan.Action{Kind: plan.CreateNode, Node: "c-twin", Position: double, Reason: "a roll that was taken back"})
	twin := w.node("c-twin")
	var left []string
	for range 20 {
		d := plan.Next(w.Observe())
		if d.Complete {
			break
		}
		for _, a := range d.Actions {
			if a.Kind == plan.Leave {
				left = append(left, a.Node)
			}
			w.do(a)
		}
	}
	if len(left) != 1 || w.primaryOf(1).Name == left[0] {
		t.Errorf("nodes %v left of two in position %v, one of them %s", left, double, twin.Name)
	}
	w.check(2, 1)
}

// A scale-in that was taken back may leave one node of a shard whose primary is
// leaving already.
func TestAReplicaOfANodeThatLeavesIsGivenToTheNewPrimaryOfItsShard(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle()
	first, last, replica := w.primaryOf(0), w.primaryOf(1), w.replicasOf(1)[0].Name
	w.Servers[first.Name].Slots, w.Servers[last.Name].Slots = slots.All(), slots.Set{}
	w.State.Recorded = nil
	last.Lifecycle = v1alpha1.LifecycleLeaving
	w.settle()
	w.check(2, 1)
	if w.node(replica).Lifecycle != v1alpha1.LifecycleActive {
		t.Errorf("%s was not kept", replica)
	}
}

func TestAMemberIsNotForgottenWhileSlotsAreOnTheirWayToIt(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	first, last := w.primaryOf(0), w.primaryOf(2)
	w.Servers[first.Name].Slots = w.Servers[first.Name].Slots.Union(w.Servers[last.Name].Slots)
	w.Servers[last.Name].Slots = slots.Set{}
	last.Lifecycle = v1alpha1.LifecycleLeaving
	s := w.Observe()
	answer(t, s, first.Name).Migrations = []topology.Migration{{
		Export: true, SourceID: w.Servers[first.Name].ID,
		TargetID: w.Servers[last.Name].ID, Slots: slots.FromRanges(slots.Range{Start: 0, End: 9}), State: "snapshotting",
	}}
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.Forget {
			t.Error(a.Reason)
		}
	}
}

func TestForcedFailoversAreAskedForOneAfterTheOther(t *testing.T) {
	w := newWorld(t, 5, 1)
	w.settle()
	w.primaryOf(1).Pod, w.primaryOf(3).Pod = plan.PodTerminated, plan.PodTerminated
	asked := func(failovers map[int32]time.Duration) (shards []int32) {
		s := w.Observe()
		s.Failovers = failovers
		for _, a := range plan.Next(s).Actions {
			if a.Kind == plan.Failover {
				shards = append(shards, a.Position.Shard)
			}
		}
		return shards
	}
	if got := asked(nil); len(got) != 1 {
		t.Errorf("failovers of shards %v at once, in one epoch", got)
	}
	if got := asked(map[int32]time.Duration{1: 50 * time.Millisecond}); len(got) != 0 {
		t.Errorf("a failover of shard %v while that of shard 1 is voted on", got)
	}
	if got := asked(map[int32]time.Duration{1: time.Second}); len(got) != 1 || got[0] != 3 {
		t.Errorf("failovers of shards %v, want 3", got)
	}
	if got := asked(map[int32]time.Duration{1: 5 * time.Second, 3: 5 * time.Second}); len(got) != 0 {
		t.Errorf("failovers of shards %v, although the voters don't vote again yet", got)
	}
	if got := asked(map[int32]time.Duration{1: 11 * time.Second, 3: 5 * time.Second}); len(got) != 1 || got[0] != 1 {
		t.Errorf("failovers of shards %v, want 1", got)
	}
}

func TestTheLostSlotsOfAShardThatIsToGoFallToAnOwner(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.State.Target.Shards = 2
	first, last := w.primaryOf(0), w.primaryOf(2)
	last.Pod = plan.PodTerminated
	w.do(plan.Action{Kind: plan.CreateNode, Node: "c-spare", Position: first.Position, Reason: "its predecessor is out of reach"})
	spare := w.node("c-spare")
	s := w.silence(w.Observe(), first.Name, true)
	for range 10 {
		for _, a := range plan.Next(s).Actions {
			if a.Kind == plan.ReplaceLost && a.Node == spare.Name {
				t.Fatalf("%s, which has no slots of its own shard", a.Reason)
			}
		}
	}
}
