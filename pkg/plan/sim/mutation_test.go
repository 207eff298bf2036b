package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// mutation is a planner or an executor with a mistake in it.
type mutation struct {
	mistake string
	hooks   Hooks
	// caught are the checks that are meant for it.
	caught []string
}

// seeing returns a planner that is told something else.
func seeing(change func(s *plan.State)) Hooks {
	return Hooks{Next: func(s plan.State) plan.Decision {
		s.Nodes, s.Replies = slices.Clone(s.Nodes), slices.Clone(s.Replies)
		change(&s)
		return plan.Next(s)
	}}
}

// saying returns a planner that decides something else.
func saying(change func(s plan.State, d plan.Decision) plan.Decision) Hooks {
	return Hooks{Next: func(s plan.State) plan.Decision { return change(s, plan.Next(s)) }}
}

func mutations() []mutation {
	return slices.Concat(moreMutations(), plainMutations(), []mutation{
		{
			"takes a node that does not answer for dead", seeing(unreachableIsDead),
			[]string{"no forget of a live member", "no deletion of a copy", "no forget before the failover", "no deletion of a primary", "no slots to an empty node while a copy lives"},
		},
		{"promotes by the offset alone", Hooks{Next: seeing(anyReplicaIsWhole).Next, drill: deathDuringCopy()}, []string{"no promotion of an unsynced replica"}},
		{"does not wait for the copy of a replacement", seeing(joiningIsJoined), []string{"copies in a roll", "no promotion of an unsynced replica"}},
		{"rolls two shards at a time", saying(twoShards), []string{"one shard at a time"}},
		{"makes a replica of a primary", saying(replicatePrimary), []string{"no replica of what has data"}},
		{"takes over without asking whether others could vote", Hooks{Before: alwaysTakeover}, []string{"no takeover with a majority"}},
		{"gives slots away before the process is known to be dead", seeing(goneIsProven), []string{"no slots to an empty node while a copy lives"}},
		{"forgets the dead before their replicas are promoted", saying(forgetFirst), []string{"no forget before the failover"}},
		{"forgets the old primary where the new one is not known", saying(forgetUnheard), []string{"no forget by who has not heard of the heir"}},
		{"deletes nodes instead of letting them leave", Hooks{Before: deleteAtOnce}, []string{"no deletion of a copy", "no deletion of a primary"}},
		{"lets a primary go that was to hand over", Hooks{Before: leaveUnhanded}, []string{"no primary leaves"}},
		{"hands out slots after the creation", seeing(alwaysCreating), []string{"no slots to an empty node while a copy lives", "no forget before the failover"}},
		{"sends commands to pods that were told to stop", seeing(nobodyTerminates), []string{"no command to the dying"}},
		{"moves slots to and fro at once", Hooks{Next: saying(bothWays).Next, Hasty: true}, []string{"never source and target at once"}},
		{"forgets a member that it sees", saying(forgetAny), []string{"no forget of a live member"}},
		{"never replaces what is outdated", seeing(nothingIsOutdated), []string{"as wished", "converges"}},
		{"never evens out", saying(without(plan.MoveSlots)), []string{"as wished", "converges"}},
		{"forgets what it asked for", seeing(func(s *plan.State) { s.Failovers = nil }), []string{"one failover at a time"}},
		{"promotes the copy with least data", saying(worstCopy), []string{"the best copy is promoted"}},
		{"makes nodes as fast as they die", seeing(func(s *plan.State) { s.Holds = nil }), []string{"no hot loop"}},
		{"tries failed migrations again at once", seeing(func(s *plan.State) { s.Stalled = nil }), []string{"failed migrations are given time"}},
		{"calls everybody well", seeing(everybodyIsWell), []string{"slots only to who is well"}},
		{"hands over whenever it comes to it", seeing(nobodyIsLate), []string{"no handover that meets the server's own"}},
		{"never deletes", saying(without(plan.DeleteNode)), []string{"as wished", "converges"}},
	})
}

// mutatedSchedules is how long a mistake may stay unnoticed: the rarest take 250.
const mutatedSchedules = 2000

// Every mistake is noticed, and by a check that is meant for it; and no check is there
// that notices none.
func TestMistakesAreNoticed(t *testing.T) {
	all, done := mutations(), 0
	var mu sync.Mutex
	noticed := map[string]bool{}
	collect := debug.SetGCPercent(800) // much garbage, little that lives
	t.Cleanup(func() {
		debug.SetGCPercent(collect)
		if done < len(all) {
			return
		}
		for _, check := range checks(t) {
			if !noticed[check] {
				t.Errorf("%q is the first to notice no mistake", check)
			}
		}
	})
	for _, m := range all {
		t.Run(m.mistake, func(t *testing.T) {
			done++
			t.Parallel()
			for seed := range uint64(mutatedSchedules) {
				r := Run(seed, Options{Hooks: m.hooks})
				if !slices.Contains(m.caught, r.Check) {
					continue
				}
				t.Logf("noticed after %d schedules: %v", seed+1, r.Err)
				mu.Lock()
				noticed[r.Check] = true
				mu.Unlock()
				return
			}
			t.Errorf("nothing noticed it in %d schedules", mutatedSchedules)
		})
	}
}

// checks returns the names of all checks, from the source.
func checks(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`violation\("([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
	}
	if len(names) == 0 {
		t.Fatal("no check found in the source")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// The drills are not what the checks notice: without a mistake they find nothing.
func TestDrillsAreLivedThrough(t *testing.T) {
	for _, m := range mutations() {
		if m.hooks.drill == nil {
			continue
		}
		t.Run(m.hooks.drill.operation.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(50) {
				r := Run(seed, Options{Hooks: Hooks{drill: m.hooks.drill}})
				if r.Err != nil {
					t.Error(r.Err)
				}
				if r.Stats.Counts["op "+m.hooks.drill.operation.name] == 0 {
					t.Errorf("seed %d: it did not happen", seed)
				}
			}
		})
	}
}

func unreachableIsDead(s *plan.State) {
	for i := range s.Nodes {
		if s.Nodes[i].Pod == plan.PodRunning && s.Nodes[i].Silent > 0 {
			s.Nodes[i].Pod = plan.PodTerminated
		}
	}
}

func anyReplicaIsWhole(s *plan.State) {
	for i := range s.Nodes {
		s.Nodes[i].InSync = true
	}
	for i := range s.Replies {
		s.Replies[i].Replication.SyncInProgress = false
		s.Replies[i].Replication.LinkDownSeconds = 1
	}
}

// deathDuringCopy is the death of a primary while its only replica, a new one, still
// copies its data.
func deathDuringCopy() *drill {
	return &drill{shards: 3, replicas: 1, operation: operation{name: "kill a primary during a copy", run: func(w *world, done func()) bool {
		var primary, replica *server
		for _, p := range w.runningPods() {
			if s := p.process; !s.isReplica() && len(s.replicas()) > 0 {
				primary, replica = s, s.replicas()[0]
			}
		}
		if primary == nil {
			return false
		}
		w.truth.fault()
		replica.kill("its successor has to copy everything")
		var look func()
		look = func() {
			for _, s := range w.servers {
				if s.running && s.repl.syncing && s.self.primaryID == primary.id {
					w.truth.fault()
					primary.kill("its replica copies its data")
					done()
					return
				}
			}
			if primary.running {
				w.after(10*time.Millisecond, look)
				return
			}
			done()
		}
		look()
		return true
	}}}
}

func joiningIsJoined(s *plan.State) {
	for i := range s.Nodes {
		s.Nodes[i].InSync = true
		if s.Nodes[i].Pod == plan.PodRunning && s.Nodes[i].Lifecycle == v1alpha1.LifecycleJoining {
			s.Nodes[i].Lifecycle = v1alpha1.LifecycleActive
		}
	}
	for i := range s.Replies {
		r := &s.Replies[i].Replication
		r.LinkUp, r.SyncInProgress = r.Role == topology.RoleReplica, false
	}
}

// twoShards hands another shard over together with the one that a roll hands over.
func twoShards(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) != 1 || d.Actions[0].Kind != plan.Failover || d.Actions[0].Mode != plan.Graceful {
		return d
	}
	for shard := range s.Target.Shards {
		if more, err := plan.Handover(s, shard, ""); err == nil && shard != d.Actions[0].Position.Shard {
			d.Actions = append(slices.Clone(d.Actions), more)
			return d
		}
	}
	return d
}

func replicatePrimary(s plan.State, d plan.Decision) plan.Decision {
	if !d.Complete || s.Creating || len(s.Replies) < 2 {
		return d
	}
	return plan.Decision{Actions: []plan.Action{{Kind: plan.Replicate, Node: s.Replies[0].Node, TargetID: s.Replies[1].ID, Reason: "a mistake"}}}
}

func alwaysTakeover(a plan.Action) plan.Action {
	if a.Mode == plan.Force {
		a.Mode = plan.Takeover
	}
	return a
}

func goneIsProven(s *plan.State) {
	for i := range s.Nodes {
		s.Nodes[i].HostGone = true
	}
}

// forgetFirst forgets a dead member as soon as it is known to be dead.
func forgetFirst(s plan.State, d plan.Decision) plan.Decision {
	for _, n := range s.Nodes {
		if !n.Dead() || n.NodeID == "" || s.Creating {
			continue
		}
		for _, r := range s.Replies {
			self, ok := r.Self()
			if ok && r.Err == nil && self.PrimaryID != n.NodeID && knows(r, n.NodeID) {
				return plan.Decision{Actions: []plan.Action{{Kind: plan.Forget, Node: r.Node, TargetID: n.NodeID, Reason: "a mistake"}}}
			}
		}
	}
	return d
}

// forgetUnheard has a member forgotten by who still gives it slots that another has
// taken over.
func forgetUnheard(s plan.State, d plan.Decision) plan.Decision {
	for _, r := range s.Replies {
		for _, row := range r.Members {
			heard := !slices.ContainsFunc(s.Replies, func(other topology.Reply) bool {
				self, ok := other.Self()
				return ok && other.Err == nil && self.ConfigEpoch > row.ConfigEpoch && !self.Slots.Intersect(row.Slots).Empty()
			})
			dead := slices.ContainsFunc(s.Nodes, func(n plan.Node) bool { return n.NodeID == row.ID && n.Dead() })
			if r.Err == nil && dead && !heard {
				return plan.Decision{Actions: []plan.Action{{Kind: plan.Forget, Node: r.Node, TargetID: row.ID, Reason: "a mistake"}}}
			}
		}
	}
	return d
}

func knows(r topology.Reply, id string) bool {
	return slices.ContainsFunc(r.Members, func(m topology.Member) bool { return m.ID == id })
}

func deleteAtOnce(a plan.Action) plan.Action {
	if a.Kind == plan.Leave {
		a.Kind = plan.DeleteNode
	}
	return a
}

func leaveUnhanded(a plan.Action) plan.Action {
	if a.Kind == plan.Failover && a.Mode == plan.Graceful && a.Target != "" {
		return plan.Action{Kind: plan.Leave, Node: a.Target, Position: a.Position, Reason: "a mistake"}
	}
	return a
}

func alwaysCreating(s *plan.State) { s.Creating = true }

func nobodyTerminates(s *plan.State) {
	for i := range s.Nodes {
		s.Nodes[i].Terminating = false
	}
}

func bothWays(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) == 0 || d.Actions[0].Kind != plan.MoveSlots {
		return d
	}
	a := d.Actions[0]
	for _, r := range s.Replies {
		self, ok := r.Self()
		source := slices.IndexFunc(s.Replies, func(r topology.Reply) bool { return r.Node == a.Node })
		if ok && r.Node == a.Target && !self.Slots.Empty() && source >= 0 {
			back := slots.FromRanges(self.Slots.Ranges()[0])
			d.Actions = append(slices.Clone(d.Actions), plan.Action{
				Kind: plan.MoveSlots, Node: a.Target, Target: a.Node,
				TargetID: s.Replies[source].ID, Slots: back, Reason: "a mistake",
			})
		}
	}
	return d
}

func forgetAny(s plan.State, d plan.Decision) plan.Decision {
	if !d.Complete || s.Creating || len(s.Replies) < 2 {
		return d
	}
	return plan.Decision{Actions: []plan.Action{{Kind: plan.Forget, Node: s.Replies[0].Node, TargetID: s.Replies[1].ID, Reason: "a mistake"}}}
}

func nothingIsOutdated(s *plan.State) {
	for i := range s.Nodes {
		s.Nodes[i].Outdated = ""
	}
}

// without returns a planner that leaves out what has a kind, and calls the cluster
// complete in its place.
func without(kind plan.Kind) func(plan.State, plan.Decision) plan.Decision {
	return func(_ plan.State, d plan.Decision) plan.Decision {
		if len(d.Actions) > 0 && d.Actions[0].Kind == kind {
			return plan.Decision{Complete: true}
		}
		return d
	}
}

// worstCopy sends a failover without consent to the replica that has least.
func worstCopy(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) != 1 || d.Actions[0].Kind != plan.Failover || d.Actions[0].Mode == plan.Graceful {
		return d
	}
	a := d.Actions[0]
	replies := map[string]topology.Reply{}
	for _, r := range s.Replies {
		replies[r.Node] = r
	}
	self, _ := replies[a.Node].Self()
	for _, n := range s.Nodes {
		row, ok := replies[n.Name].Self()
		if ok && n.InSync && row.PrimaryID == self.PrimaryID && replies[n.Name].Replication.Offset < replies[a.Node].Replication.Offset {
			a.Node = n.Name
		}
	}
	return plan.Decision{Actions: []plan.Action{a}}
}

func everybodyIsWell(s *plan.State) {
	for i := range s.Replies {
		s.Replies[i].Info.State = topology.StateOK
	}
}

func nobodyIsLate(s *plan.State) {
	for i := range s.Nodes {
		s.Nodes[i].TerminatingFor = 0
	}
}
