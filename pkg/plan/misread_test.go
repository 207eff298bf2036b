package plan_test

import (
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

func TestANewReplicaThatIsTakenForAPrimaryForeverIsReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		misread  time.Duration
		epoch    uint64
		active   bool
		replaced bool
	}{
		"for long":             {time.Minute, 100, false, true},
		"for a moment":         {time.Second, 100, false, false},
		"one that has joined":  {time.Minute, 100, true, false},
		"its word will be new": {time.Minute, 0, false, false},
	} {
		w := newWorld(t, 3, 1)
		w.settle()
		n, viewer := w.replicasOf(1)[0], w.replicasOf(2)[0]
		n.Misread = c.misread
		if !c.active {
			n.Lifecycle = v1alpha1.LifecycleJoining
		}
		s := w.Observe()
		for i := range s.Replies {
			for j := range s.Replies[i].Members {
				if row := &s.Replies[i].Members[j]; s.Replies[i].Node == viewer.Name && row.ID == w.Servers[n.Name].ID {
					row.Role, row.PrimaryID, row.ConfigEpoch = topology.RolePrimary, "", c.epoch
				}
			}
		}
		if got := plan.IsMisread(topology.Merge(s.Replies), n.Name); got != (c.epoch > 0) {
			t.Errorf("%s: misread %v", name, got)
		}
		replaced := false
		for _, a := range plan.Next(s).Actions {
			replaced = replaced || a.Kind == plan.DeleteNode && a.Node == n.Name
		}
		if replaced != c.replaced {
			t.Errorf("%s: replaced %v, want %v", name, replaced, c.replaced)
		}
	}
}
