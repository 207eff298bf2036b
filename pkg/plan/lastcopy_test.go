package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

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

func TestAReplicaThatLeavesIsNotTakenBackForAPrimaryThatMissedAnAnswer(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary, replica := w.primaryOf(1), w.replicasOf(1)[0]
	w.State.Target.ReplicasPerShard = 0
	for silent, want := range map[time.Duration]bool{2 * time.Second: false, time.Minute: true} {
		replica.Lifecycle, primary.Silent = v1alpha1.LifecycleLeaving, silent
		s := w.silence(w.Observe(), primary.Name, true)
		got := slices.ContainsFunc(plan.Next(s).Actions, func(a plan.Action) bool { return a.Kind == plan.Activate && a.Node == replica.Name })
		if got != want {
			t.Errorf("%s after the last answer of its primary it is taken back: %v", silent, got)
		}
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

func TestANewShardWhoseFirstNodeHangsIsHelped(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	first, last := w.primaryOf(0), w.primaryOf(2)
	w.Servers[first.Name].Slots = w.Servers[first.Name].Slots.Union(w.Servers[last.Name].Slots)
	w.Servers[last.Name].Slots = slots.Set{}
	w.State.Recorded = nil
	last.Silent, last.Lifecycle = 2*time.Minute, v1alpha1.LifecycleJoining
	if a := only(t, plan.Next(w.silence(w.Observe(), last.Name, true))); a.Kind != plan.DeleteNode || a.Node != last.Name {
		t.Errorf("want the node that hangs to go, got %+v", a)
	}
}

func TestANodeThatWasGivenSlotsBeforeItJoinedIsWaitedFor(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.settle()
	n := w.primaryOf(1)
	s := w.Observe()
	w.node(n.Name).Lifecycle, w.node(n.Name).InSync, w.node(n.Name).Pod = v1alpha1.LifecycleJoining, false, plan.PodGone
	s.Replies = slices.DeleteFunc(s.Replies, func(r topology.Reply) bool { return r.Node == n.Name })
	if awaited := plan.AwaitedCopies(s); len(awaited) != 1 {
		t.Errorf("awaited copies %v, want %s", awaited, n.Name)
	}
	for i := range s.Replies { // even when nobody else has heard of it
		s.Replies[i].Members = slices.DeleteFunc(s.Replies[i].Members, func(m topology.Member) bool { return m.ID == w.Servers[n.Name].ID })
	}
	if awaited := plan.AwaitedCopies(s); len(awaited) != 1 {
		t.Errorf("awaited copies %v, want %s", awaited, n.Name)
	}
}

func TestADeadMemberIsNotForgottenWhileOneOfItsShardDoesNotAnswer(t *testing.T) {
	w := newWorld(t, 2, 2)
	w.settle()
	dead, silent := w.replicasOf(1)[0], w.replicasOf(1)[1]
	dead.Pod, silent.Silent = plan.PodTerminated, 5*time.Second
	for _, a := range plan.Next(w.silence(w.Observe(), silent.Name, true)).Actions {
		if a.Kind == plan.Forget {
			t.Error(a.Reason)
		}
	}
}

func TestAnOlderCopyIsLeftToTheUser(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	replica := w.replicasOf(1)[0].Name
	w.primaryOf(1).Pod = plan.PodTerminated
	s := w.Observe()
	r := answer(t, s, replica)
	r.Replication.LinkUp, r.Replication.HasLinkDownSeconds, r.Replication.LinkDownSeconds, r.Keys = false, true, -1, 5
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.DeleteNode && a.Node == replica || a.Kind == plan.ReplaceLost || a.Kind == plan.Failover {
			t.Errorf("%s: %s", a.Kind, a.Reason)
		}
	}
	if awaited := plan.AwaitedCopies(s); len(awaited) != 1 || !strings.Contains(awaited[0], replica) {
		t.Errorf("nothing says that %s holds an older copy: %v", replica, awaited)
	}
	s.LossAccepted = true
	if a := only(t, plan.Next(s)); a.Kind != plan.DeleteNode || a.Node != replica {
		t.Errorf("want it to go once its loss is accepted, got %+v", a)
	}
}

func TestTheServersElectionIsNotWaitedForForever(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	primary, replica := w.primaryOf(1), w.replicasOf(1)[0].Name
	primary.Pod, primary.Silent = plan.PodGone, time.Minute
	s := w.Observe()
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.Failover {
			t.Errorf("%s although the election may be on", a.Mode)
		}
	}
	answer(t, s, replica).Replication.LinkDownSeconds = 40
	if a := only(t, plan.Next(s)); a.Kind != plan.Failover || a.Mode != plan.Force {
		t.Errorf("want FORCE, got %+v", a)
	}
	flag(s, func(string, *topology.Member) bool { return true }, false)
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.Failover {
			t.Errorf("%s although the others see the primary alive", a.Mode)
		}
	}
}

func TestAReplacementThatWasElectedIsNotTakenBack(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	n := w.replicasOf(1)[0]
	w.do(plan.Action{Kind: plan.CreateNode, Node: "c-twin", Position: n.Position, Reason: "a roll"})
	w.node("c-twin").Outdated = "image"
	s := w.Observe()
	for i := range s.Replies {
		if s.Replies[i].Node == "c-twin" {
			s.Replies[i] = reply{Node: "c-twin", ID: w.Servers["c-twin"].ID, Err: errors.New("timeout")}
		}
	}
	for _, a := range plan.Next(s).Actions {
		if a.Kind == plan.DeleteNode && a.Node == "c-twin" {
			t.Errorf("%s while nobody knows what it has become", a.Reason)
		}
	}
}

// A node that died right after it took slots leaves others that never heard of it.
func TestALossIsFoundAlthoughSomebodyHasAnOldTable(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	dead, witness, former := w.primaryOf(0), w.primaryOf(1).Name, w.primaryOf(2).Name
	moved := slots.FromRanges(slots.Range{Start: 0, End: 99})
	dead.Pod = plan.PodTerminated
	s := w.Observe()
	w.says(s, witness, former, w.Servers[former].Slots.Union(moved))
	if a := plan.Next(s).Actions; len(a) == 0 || a[0].Kind != plan.Forget || a[0].TargetID != w.Servers[dead.Name].ID {
		t.Errorf("want the dead owner to be forgotten, got %v", a)
	}
}

func TestLostSlotsGoToAPrimaryThatIsSurplusByNow(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.settle()
	dead := w.primaryOf(1)
	w.kill(dead.Name)
	w.do(plan.Action{Kind: plan.CreateNode, Node: "c-extra", Position: plan.Position{Shard: 1, Index: 1}, Reason: "a replica was wished"})
	w.do(plan.Action{Kind: plan.CreateNode, Node: "c-spare", Position: dead.Position, Reason: "the primary is dead"})
	w.do(plan.Action{Kind: plan.Introduce, Node: "c-spare", Target: "c-extra", Reason: "they don't know each other"})
	w.do(plan.Action{Kind: plan.Replicate, Node: "c-spare", TargetID: w.Servers["c-extra"].ID, Reason: "the first of the shard is its primary"})
	w.settle() // the replica is not wished any more
	w.check(2, 0)
}
