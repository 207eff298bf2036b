package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// silence makes a node of an observation not answer while the others call it
// failed.
func (w *world) silence(s plan.State, name string, suspected bool) plan.State {
	for i := range s.Replies {
		r := &s.Replies[i]
		if r.Node == name {
			r.Err, r.Members = errors.New("timeout"), nil
		}
		for j := range r.Members {
			if r.Members[j].ID == w.Servers[name].ID && r.Node != name {
				r.Members[j].Failed, r.Members[j].LinkUp = suspected, !suspected
			}
		}
	}
	return s
}

func TestAHungNodeIsReplacedOnceNothingDependsOnIt(t *testing.T) {
	for _, c := range []struct {
		what      string
		silent    time.Duration
		primary   bool
		suspected bool
		replaced  bool
	}{
		{"a replica that hangs", 2 * time.Minute, false, true, true},
		{"a replica that was silent for a moment", 30 * time.Second, false, true, false},
		{"a replica that only the manager can't reach", 2 * time.Minute, false, false, false},
		{"a primary that still owns its slots", 2 * time.Minute, true, true, false},
	} {
		w := newWorld(t, 3, 1)
		w.settle()
		n := w.replicasOf(0)[0]
		if c.primary {
			n = w.primaryOf(0)
		}
		n.Silent = c.silent
		deleted := false
		for _, a := range plan.Next(w.silence(w.Observe(), n.Name, c.suspected)).Actions {
			deleted = deleted || a.Kind == plan.DeleteNode && a.Node == n.Name
		}
		if deleted != c.replaced {
			t.Errorf("%s: replaced %v, want %v", c.what, deleted, c.replaced)
		}
	}
}

// Nodes on their way out are not asked, and so don't count among those that don't
// answer.
func TestAHungNodeIsReplacedWhileManyOthersLeave(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.settle()
	w.State.Target.Shards = 1
	leaves := w.until(plan.Leave)
	for _, a := range leaves {
		w.do(a)
	}
	if len(leaves) != 6 {
		t.Fatalf("%d nodes leave, want 6", len(leaves))
	}
	hung := w.replicasOf(0)[0]
	hung.Silent = 2 * time.Minute
	if a := only(t, plan.Next(w.silence(w.Observe(), hung.Name, true))); a.Kind != plan.DeleteNode || a.Node != hung.Name {
		t.Errorf("want the node that hangs to go, got %+v", a)
	}
}
