package plan_test

import (
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan/ideal"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// world is an ideal one in which a test acts: what a server would refuse fails the
// test.
type world struct {
	*ideal.World
	t *testing.T
}

func newWorld(t *testing.T, shards, replicas int32) *world {
	t.Helper()
	return &world{t: t, World: ideal.New("c", v1alpha1.TargetTopology{Shards: shards, ReplicasPerShard: replicas})}
}

func (w *world) node(name string) *plan.Node {
	w.t.Helper()
	n := w.Node(name)
	if n == nil {
		w.t.Fatalf("there is no node %q", name)
	}
	return n
}

// do carries out one action.
func (w *world) do(a plan.Action) {
	w.t.Helper()
	if a.Reason == "" {
		w.t.Errorf("%s has no reason", a.Kind)
	}
	if err := w.Do(a); err != nil {
		w.t.Errorf("%s %s: %v", a.Kind, a.Node, err)
	}
}

// promote makes a replica the primary of its shard, as an election does.
func (w *world) promote(name string) {
	w.t.Helper()
	if err := w.Do(plan.Action{Kind: plan.Failover, Node: name}); err != nil {
		w.t.Fatal(err)
	}
}

// kill ends a node's container for good.
func (w *world) kill(name string) { w.node(name).Pod = plan.PodTerminated }

// settle plans and acts until nothing is left to do.
func (w *world) settle() {
	w.t.Helper()
	for range 200 {
		d := plan.Next(w.Observe())
		if d.Complete {
			w.State.Creating = false
			return
		}
		if len(d.Actions) == 0 {
			w.t.Fatalf("stuck: %s", d.Waiting)
		}
		kind := d.Actions[0].Kind
		for _, a := range d.Actions {
			if a.Kind != kind {
				w.t.Fatalf("a batch mixes %s and %s", kind, a.Kind)
			}
			w.do(a)
		}
	}
	w.t.Fatal("no end after 200 steps")
}

// waits plans and acts until there is nothing to do but wait, and returns for what. Each
// sees every action before it is done.
func (w *world) waits(each func(plan.Action)) string {
	w.t.Helper()
	for range 100 {
		d := plan.Next(w.Observe())
		if len(d.Actions) == 0 {
			return d.Waiting
		}
		for _, a := range d.Actions {
			each(a)
			w.do(a)
		}
	}
	w.t.Fatal("no end")
	return ""
}

// check compares the cluster with a shape.
func (w *world) check(shards, replicas int32) {
	w.t.Helper()
	if got, want := len(w.State.Nodes), int(shards*(replicas+1)); got != want {
		w.t.Errorf("%d nodes, want %d", got, want)
	}
	var all slots.Set
	primaries := map[int32]int{}
	for _, n := range w.State.Nodes {
		s := w.Servers[n.Name]
		if !all.Intersect(s.Slots).Empty() {
			w.t.Errorf("node %s owns slots that another one owns too", n.Name)
		}
		all = all.Union(s.Slots)
		if s.Primary == "" {
			primaries[n.Position.Shard]++
			continue
		}
		for name, p := range w.Servers {
			if p.ID == s.Primary && w.node(name).Position.Shard != n.Position.Shard {
				w.t.Errorf("node %s of shard %d follows a node of another shard", n.Name, n.Position.Shard)
			}
		}
	}
	if all.Len() != slots.Count {
		w.t.Errorf("%d slots are owned", all.Len())
	}
	for shard := range shards {
		if primaries[shard] != 1 {
			w.t.Errorf("shard %d has %d primaries", shard, primaries[shard])
		}
	}
}
