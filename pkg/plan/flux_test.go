package plan_test

import (
	"slices"
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
	for i, row := range answer(t, s, from).Members {
		if row.ID == w.Servers[to].ID {
			answer(t, s, from).Members[i].ConfigEpoch++ // whoever takes slots takes a new epoch
		}
	}
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

func TestOfTwoGoodNodesInOnePositionOneLeaves(t *testing.T) {
	for _, promoted := range []bool{false, true} {
		w := newWorld(t, 2, 1)
		w.settle()
		double := w.replicasOf(1)[0].Position
		w.do(plan.Action{Kind: plan.CreateNode, Node: "c-twin", Position: double, Reason: "a roll that was taken back"})
		if promoted {
			for _, a := range w.until(plan.Activate) {
				w.do(a)
			}
			w.promote("c-twin")
		}
		var left []string
		for range 20 {
			d := plan.Next(w.Observe())
			if d.Complete {
				break
			}
			for _, a := range d.Actions {
				if a.Kind == plan.Leave {
					left = append(left, a.Node)
					if a.Node == w.primaryOf(1).Name {
						t.Errorf("promoted %v: the primary leaves", promoted)
					}
				}
				w.do(a)
			}
		}
		if len(left) != 1 {
			t.Errorf("promoted %v: nodes %v left of two in position %v", promoted, left, double)
		}
		w.check(2, 1)
	}
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

func TestAClusterIsNotCompleteWhileAPositionHasNoNode(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	gone := *w.replicasOf(1)[0]
	w.do(plan.Action{Kind: plan.DeleteNode, Node: gone.Name, Reason: "somebody deletes it"})
	for i := range w.State.Nodes {
		w.State.Nodes[i].Outdated = "image"
	}
	w.State.Holds = map[plan.Position]plan.Hold{gone.Position: {Remaining: time.Minute, Reason: "it died before it joined"}}
	for range 5 {
		d := plan.Next(w.Observe())
		if len(d.Actions) == 0 {
			if d.Waiting != "it died before it joined" {
				t.Errorf("complete=%v waiting=%q", d.Complete, d.Waiting)
			}
			return
		}
		for _, a := range d.Actions {
			if a.Kind == plan.CreateNode || a.Kind == plan.Failover || a.Kind == plan.Leave {
				t.Fatalf("%s: %s", a.Kind, a.Reason)
			}
			w.do(a)
		}
	}
}

func TestAReplicaOfAReplicaIsGivenToThePrimary(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.settle()
	old, replicas := w.primaryOf(0).Name, w.replicasOf(0)
	w.promote(replicas[0].Name)
	w.Servers[replicas[1].Name].Primary = w.Servers[old].ID
	if a := only(t, plan.Next(w.Observe())); a.Kind != plan.Replicate || a.Node != replicas[1].Name || a.Target != replicas[0].Name {
		t.Errorf("want %s to follow %s, got %+v", replicas[1].Name, replicas[0].Name, a)
	}
}

// promoteLast makes the last of a shard's three nodes its primary, which is surplus once
// a shard has one replica.
func (w *world) promoteLast(shard int32) {
	w.t.Helper()
	replicas := w.replicasOf(shard)
	i := slices.IndexFunc(replicas, func(n *plan.Node) bool { return n.Position.Index == 2 })
	w.promote(replicas[i].Name)
}

func TestAHandoverNamesItsShardAndIsNotAskedForTwice(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.settle()
	w.promoteLast(1)
	w.State.Target.ReplicasPerShard = 1
	s := w.Observe()
	if a := only(t, plan.Next(s)); a.Kind != plan.Failover || a.Position.Shard != 1 {
		t.Errorf("want a failover of shard 1, got %+v", a)
	}
	for _, ago := range []time.Duration{time.Second, 5 * time.Second} {
		s.Failovers = map[int32]time.Duration{1: ago}
		for _, a := range plan.Next(s).Actions {
			if a.Kind == plan.Failover {
				t.Errorf("a second failover is asked for %s after the first: it may be under way, or the voters don't vote again yet", ago)
			}
		}
	}
}

// A handover is a disruption: the copy that is missing comes first.
func TestAPrimaryThatIsSurplusStaysWhileAPositionHasNoNode(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.settle()
	w.promoteLast(1)
	w.State.Target.ReplicasPerShard = 1
	missing := plan.Position{Shard: 2, Index: 1}
	w.State.Nodes = slices.DeleteFunc(w.State.Nodes, func(n plan.Node) bool { return n.Position == missing })
	w.State.Holds = map[plan.Position]plan.Hold{missing: {Remaining: time.Minute, Reason: "another is made in a minute"}}
	if d := plan.Next(w.Observe()); len(d.Actions) > 0 || d.Waiting != "another is made in a minute" {
		t.Errorf("want to wait for the node, got %v, waiting %q", kinds(d), d.Waiting)
	}
}

// A server that is source and target at once may crash.
func TestAServerNeverGivesAndTakesSlotsAtOnce(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.State.Target.Shards = 4
	move := w.until(plan.MoveSlots)[0]
	some := slots.FromRanges(slots.Range{Start: 0, End: 9})
	for what, job := range map[string]struct {
		of  string
		job topology.Migration
	}{
		"the source takes": {move.Node, topology.Migration{SourceID: "another", Slots: some, State: "receiving-snapshot"}},
		"the target gives": {move.Target, topology.Migration{Export: true, TargetID: "another", Slots: some, State: "snapshotting"}},
	} {
		s := w.Observe()
		answer(t, s, job.of).Migrations = []topology.Migration{job.job}
		for _, a := range plan.Next(s).Actions {
			if a.Kind == plan.MoveSlots && (a.Node == job.of || a.Target == job.of) {
				t.Errorf("%s: slots move from %s to %s", what, a.Node, a.Target)
			}
		}
	}
}

// A primary may be in a place that is wished no more: nobody else waits until it is well.
func TestNoSlotsMoveToASurplusPrimaryThatIsNotWell(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.settle()
	w.promoteLast(0)
	w.settle()
	w.State.Target.Shards, w.State.Target.ReplicasPerShard = 2, 1
	to := w.primaryOf(0).Name
	for state, want := range map[string]bool{topology.StateOK: true, "fail": false} {
		s := w.Observe()
		answer(t, s, to).Info.State = state
		moved := slices.ContainsFunc(plan.Next(s).Actions, func(a plan.Action) bool { return a.Kind == plan.MoveSlots && a.Target == to })
		if moved != want {
			t.Errorf("slots move to a primary that calls the cluster %q: %v", state, moved)
		}
	}
}

func TestANodeThatHoldsKeysIsMadeNoReplica(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.settle()
	n := w.replicasOf(1)[0].Name
	for keys, want := range map[int64]bool{0: true, 5: false} {
		w.Servers[n].Primary, w.Servers[n].Keys = "", keys
		got := slices.ContainsFunc(plan.Next(w.Observe()).Actions, func(a plan.Action) bool { return a.Kind == plan.Replicate && a.Node == n })
		if got != want {
			t.Errorf("a primary without slots that holds %d keys is made a replica: %v", keys, got)
		}
	}
}

// F-07
func TestAFailoverThatIsAskedForTwiceHappensOnce(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	s := w.Observe()
	if _, err := plan.Handover(s, 1, ""); err != nil {
		t.Fatal(err)
	}
	s.Failovers = map[int32]time.Duration{1: time.Second}
	if a, err := plan.Handover(s, 1, ""); err == nil {
		t.Errorf("%s while another is under way", a.Reason)
	}
}

// F-05: a node that has not heard yet who took over would take the slots for unserved if
// it forgot who had them before.
func TestAMemberIsForgottenOnlyByThoseWhoHaveHeardOfItsHeir(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	old, heir := w.primaryOf(0), w.replicasOf(0)[0]
	late := w.primaryOf(1).Name
	before := answer(t, w.Observe(), late).Members
	w.promote(heir.Name)
	w.kill(old.Name)
	forgetting := func(s plan.State) map[string]bool {
		out := map[string]bool{}
		for _, a := range plan.Next(s).Actions {
			if a.Kind == plan.Forget && a.TargetID == w.Servers[old.Name].ID {
				out[a.Node] = true
			}
		}
		return out
	}
	for range 20 {
		s := w.Observe()
		all := forgetting(s)
		if len(all) == 0 {
			for _, a := range plan.Next(s).Actions {
				w.do(a)
			}
			continue
		}
		answer(t, s, late).Members = before
		if some := forgetting(s); !all[late] || some[late] || len(some) != len(all)-1 {
			t.Errorf("%v forget the old primary when all know of the new one, and %v when %s doesn't", all, some, late)
		}
		// An owner of the same epoch would not be believed.
		same := slices.Clone(before)
		for i := range same {
			if same[i].ID == w.Servers[old.Name].ID {
				same[i].ConfigEpoch = w.Servers[heir.Name].Epoch
			}
		}
		if answer(t, s, late).Members = same; !forgetting(s)[late] {
			t.Errorf("%s waits for the word of an owner whose epoch is the same", late)
		}
		return
	}
	t.Error("nobody forgets the old primary")
}
