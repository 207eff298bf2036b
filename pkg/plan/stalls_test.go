package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// said is what a source says of its migrations, the newest first.
func said(states ...string) []topology.Reply {
	r := topology.Reply{Node: "c-00000"}
	for i, state := range states {
		r.Migrations = append(r.Migrations, topology.Migration{Name: fmt.Sprint(len(states) - i), Export: true, State: state, Message: "no route", Created: int64(len(states) - i)})
	}
	return []topology.Reply{r}
}

// S-03
func TestFailedMigrationsAreTriedAgainMoreAndMoreSlowly(t *testing.T) {
	var s plan.Stalls
	now := time.Unix(1000, 0)
	var failed []string
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
		failed = append(failed, "failed")
		hold := s.Note(said(failed...), now)["c-00000"]
		if hold.Remaining != want*time.Second {
			t.Errorf("after failure %d the source waits %s, want %ds", i+1, hold.Remaining, want)
		}
		if want := fmt.Sprintf("node c-00000 says: no route (attempt %d, ", i+1); !strings.HasPrefix(hold.Reason, want) {
			t.Errorf("reason %q, want %q…", hold.Reason, want)
		}
		if again := s.Note(said(failed...), now.Add(time.Second))["c-00000"]; again.Remaining != hold.Remaining-time.Second || again.Reason != hold.Reason {
			t.Errorf("seeing failure %d again changes %+v to %+v", i+1, hold, again)
		}
		if active := s.Note(said(append([]string{"snapshotting"}, failed...)...), now)["c-00000"]; active.Reason != hold.Reason {
			t.Errorf("the next attempt lets failure %d be forgotten: %+v", i+1, active)
		}
	}
	if left := s.Note(said("success", "failed"), now); len(left) != 0 {
		t.Errorf("after a success the source waits: %+v", left)
	}
	if first := s.Note(said("failed", "success", "failed"), now)["c-00000"]; first.Remaining != 5*time.Second {
		t.Errorf("the first failure after it makes the source wait %s", first.Remaining)
	}
	taken := said("failed")
	taken[0].Migrations[0].Export = false
	if left := s.Note(taken, now); len(left) != 0 {
		t.Errorf("what others failed to give makes it wait: %+v", left)
	}
	if left := s.Note(said(), now); len(left) != 0 {
		t.Errorf("a server that was restarted waits: %+v", left)
	}
}

// A move is many jobs of one command, of which the first to be listed says nothing of the
// others.
func TestAMoveHasFailedIfOneOfItsJobsHas(t *testing.T) {
	jobs := func(command int64, states ...string) (out []topology.Migration) {
		for i, state := range states {
			out = append(out, topology.Migration{Name: fmt.Sprint(command, i), Export: true, State: state, Message: fmt.Sprint("job ", i), Created: command})
		}
		return out
	}
	for name, c := range map[string]struct {
		newest []topology.Migration
		want   string // of what holds the source after a failure of job 1 of another command
	}{
		"the first succeeded, others failed": {jobs(2, "success", "failed", "failed"), "job 1 (attempt 2"},
		"the last failed":                    {jobs(2, "success", "success", "cancelled"), "job 2 (attempt 2"},
		"one is under way":                   {jobs(2, "failed", "success", "snapshotting"), "job 1 (attempt 1"},
		"all succeeded":                      {jobs(2, "success", "success"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var s plan.Stalls
			now, before := time.Unix(1000, 0), jobs(1, "success", "failed")
			s.Note([]topology.Reply{{Node: "c-00000", Migrations: before}}, now)
			for range 2 { // seen again, it is the same attempt
				hold := s.Note([]topology.Reply{{Node: "c-00000", Migrations: append(c.newest, before...)}}, now)["c-00000"]
				if !strings.Contains(hold.Reason, c.want) || (hold.Reason == "") != (c.want == "") {
					t.Errorf("held by %q, want %q", hold.Reason, c.want)
				}
			}
		})
	}
}

// S-03
func TestASourceThatFailsHoldsUpNoOther(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.State.Target.Shards = 4
	var moves []plan.Action
	for range 20 {
		d := plan.Next(w.Observe())
		if len(d.Actions) > 0 && d.Actions[0].Kind == plan.MoveSlots {
			moves = d.Actions
			break
		}
		for _, a := range d.Actions {
			w.do(a)
		}
	}
	if len(moves) != 3 {
		t.Fatalf("%d moves, want one from each shard", len(moves))
	}
	source := moves[0].Node
	w.State.Stalled = map[string]plan.Hold{source: {Remaining: time.Second, Reason: "node " + source + " says: no route"}}
	rest := plan.Next(w.Observe()).Actions
	if len(rest) != 2 {
		t.Fatalf("%d moves go on, want 2", len(rest))
	}
	for _, a := range rest {
		if a.Node == source {
			t.Errorf("%s is asked again", source)
		}
		w.do(a)
	}
	d := plan.Next(w.Observe())
	if len(d.Actions) != 0 || !strings.Contains(d.Waiting, "slots can't move from shard 0 to shard 3: node "+source+" says: no route") {
		t.Errorf("decided %+v", d)
	}
	w.State.Stalled[source] = plan.Hold{}
	w.settle()
	w.check(4, 0)
}

// A replica lists the imports of its primary too, as "occurring-on-primary" and
// without their source, and may be late to learn of their end.
func TestWhatAReplicaTellsOfMigrationsHoldsUpNothing(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	import1 := topology.Migration{Name: "1", State: "occurring-on-primary"}
	for role, done := range map[topology.Role]bool{topology.RoleReplica: true, topology.RolePrimary: false} {
		s := w.Observe()
		for i, reply := range s.Replies {
			if self, ok := reply.Self(); ok && self.Role == role {
				s.Replies[i].Migrations = []topology.Migration{import1}
			}
		}
		if d := plan.Next(s); d.Complete != done {
			t.Errorf("an import that each %s tells of: decided %+v", role, d)
		}
	}
}
