package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// hang makes the servers of a shard hang for long.
func (w *world) hang(shard int32, suspected bool) {
	w.t.Helper()
	for i := range w.State.Nodes {
		if n := &w.State.Nodes[i]; n.Position.Shard == shard {
			n.Silent = 2 * time.Minute
			w.Servers[n.Name].Silent, w.Servers[n.Name].Suspected = true, suspected
		}
	}
}

// A server that hangs runs on by the word of Kubernetes, so that nothing but the
// manager ever ends it.
func TestAnAcknowledgedLossOfAShardThatHangsIsMadeGood(t *testing.T) {
	for _, c := range []struct{ shards, replicas, hanging int32 }{
		{1, 0, 1}, {1, 2, 1}, {2, 0, 1}, {2, 1, 1}, {3, 0, 1}, {3, 1, 1}, {3, 0, 2}, {3, 1, 3},
	} {
		t.Run(fmt.Sprintf("%d of %d shards with %d replicas", c.hanging, c.shards, c.replicas), func(t *testing.T) {
			w := newWorld(t, c.shards, c.replicas)
			w.settle()
			for shard := range c.hanging {
				w.hang(shard, true)
			}
			for _, a := range plan.Next(w.Observe()).Actions {
				if a.Kind == plan.DeleteNode || a.Kind == plan.ReplaceLost || a.Kind == plan.Forget {
					t.Errorf("%s %s although nobody accepted a loss: %s", a.Kind, a.Node, a.Reason)
				}
			}
			w.State.LossAccepted = true
			w.settle()
			w.check(c.shards, c.replicas)
		})
	}
}

// One that serves others is not lost, whatever the manager hears of it.
func TestAnAcknowledgementEndsNoNodeThatTheOthersSeeAlive(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.hang(1, false)
	w.State.LossAccepted = true
	for _, a := range plan.Next(w.Observe()).Actions {
		if a.Kind == plan.DeleteNode || a.Kind == plan.ReplaceLost || a.Kind == plan.Forget {
			t.Errorf("%s %s: %s", a.Kind, a.Node, a.Reason)
		}
	}
}
