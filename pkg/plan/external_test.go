package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// move carries out what is due on labels, and reports whether anything was.
func (w *world) move() bool {
	off, on := plan.Labels(w.Observe())
	for _, name := range off {
		w.node(name).External.Labelled = false
	}
	for _, name := range on {
		w.node(name).External.Labelled = true
	}
	return len(off)+len(on) > 0
}

// labelled checks that no position has two labels, and returns who has which.
func (w *world) labelled() map[plan.Position]string {
	w.t.Helper()
	out := map[plan.Position]string{}
	for _, n := range w.State.Nodes {
		if !n.External.Labelled {
			continue
		}
		if other := out[n.Position]; other != "" {
			w.t.Errorf("nodes %s and %s both have the label of %v", other, n.Name, n.Position)
		}
		out[n.Position] = n.Name
	}
	return out
}

// expose gives every node a port outside.
func (w *world) expose() {
	for i := range w.State.Nodes {
		w.State.Nodes[i].External.Exposed = true
	}
	for w.move() {
		w.labelled()
	}
}

// E-06: through a roll each outside port leads to one node at most, and a failover
// leads to a node that has its port.
func TestOutsidePortsFollowARoll(t *testing.T) {
	for _, replicas := range []int32{0, 1, 2} {
		w := newWorld(t, 2, replicas)
		w.settle()
		w.expose()
		if got := len(w.labelled()); got != int(2*(replicas+1)) {
			t.Fatalf("%d ports lead somewhere", got)
		}
		w.outdate("image valkey:1, not valkey:2")
		for step := 0; ; step++ {
			if w.move() {
				w.labelled()
				continue
			}
			d := plan.Next(w.Observe())
			if d.Complete {
				break
			}
			if step > 300 || len(d.Actions) == 0 {
				t.Fatalf("stuck after %d steps: %s", step, d.Waiting)
			}
			for _, a := range d.Actions {
				if a.Kind == plan.Failover && !w.node(a.Node).External.Labelled && replicas > 0 {
					t.Errorf("%s becomes a primary that no outside port leads to", a.Node)
				}
				if a.Kind == plan.Leave && w.node(a.Node).External.Labelled {
					t.Errorf("%s leaves with its outside port", a.Node)
				}
				w.do(a)
				if a.Kind == plan.CreateNode {
					w.node(a.Node).External.Exposed = true
				}
			}
		}
		ports := w.labelled()
		for _, n := range w.State.Nodes {
			if ports[n.Position] != n.Name {
				t.Errorf("%d replicas: the port of %v leads to %q, not %s", replicas, n.Position, ports[n.Position], n.Name)
			}
		}
	}
}

// A roll waits for the port of the replica that is to take over, and of the successor
// before its predecessor goes.
func TestARollWaitsForOutsidePorts(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.expose()
	w.outdate("image valkey:1, not valkey:2")
	var waited []string
	for range 100 {
		d := plan.Next(w.Observe())
		if d.Complete {
			break
		}
		if len(d.Actions) == 0 {
			if len(waited) == 0 || waited[len(waited)-1] != d.Waiting {
				waited = append(waited, d.Waiting)
			}
			w.move()
			continue
		}
		for _, a := range d.Actions {
			w.do(a)
			if a.Kind == plan.CreateNode {
				w.node(a.Node).External.Exposed = true
			}
		}
	}
	moves := 0
	for _, why := range waited {
		if strings.Contains(why, "the outside port of shard 0") {
			moves++
		}
	}
	if moves != 2 {
		t.Errorf("waited for %q, want the port of both nodes", waited)
	}
}

func TestAShardIsNotHandedToAReplicaThatNoPortLeadsTo(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.expose()
	w.primaryOf(0).Outdated = "image valkey:1, not valkey:2"
	replica := w.replicasOf(0)[0]
	for _, c := range []struct {
		labelled, opening bool
		ending            map[int32]string
		want              string
	}{
		{false, true, nil, "does not lead to it yet"},
		{true, true, nil, "has only just come to lead to it"},
		{true, false, map[int32]string{0: "c-old"}, "still be connected to pod c-old"},
		{true, false, map[int32]string{1: "c-old"}, ""},
		{true, false, nil, ""},
	} {
		replica.External.Labelled, replica.External.Opening, w.State.Ending = c.labelled, c.opening, c.ending
		d := plan.Next(w.Observe())
		if moved := len(d.Actions) > 0; moved != (c.want == "") || !strings.Contains(d.Waiting, c.want) || !moved && !strings.Contains(d.Waiting, "outside port of replica "+replica.Name) {
			t.Errorf("labelled %v, opening %v, ending %v: %v, waiting %q", c.labelled, c.opening, c.ending, kinds(d), d.Waiting)
		}
	}
}

func TestTheLabelOfADeadNodeGoesAtOnce(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.expose()
	victim := w.State.Nodes[0].Name
	w.kill(victim)
	off, on := plan.Labels(w.Observe())
	if !slices.Equal(off, []string{victim}) || len(on) > 0 {
		t.Errorf("off %v, on %v, want %s off", off, on, victim)
	}
	w.move()
	if off, on := plan.Labels(w.Observe()); len(off)+len(on) > 0 {
		t.Errorf("nothing was left to do: off %v, on %v", off, on)
	}
}

// Silence alone takes no port away: it may be the manager that is cut off. A node
// that could have the port instead gets it.
func TestTheLabelOfASilentNodeGoesWhenThereIsAnother(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.expose()
	for i := range w.State.Nodes {
		w.State.Nodes[i].Silent = time.Minute
	}
	if off, on := plan.Labels(w.Observe()); len(off)+len(on) > 0 {
		t.Errorf("off %v, on %v, although nobody could have the ports instead", off, on)
	}
	for i := range w.State.Nodes {
		w.State.Nodes[i].Silent = 0
	}
	var replica *plan.Node
	for i, n := range w.State.Nodes {
		if v := topology.Merge(w.Observe().Replies).Nodes[n.Name]; v.Role == topology.RoleReplica {
			replica = &w.State.Nodes[i]
		}
	}
	replica.Silent = time.Minute
	another := *replica
	another.Name, another.NodeID, another.Silent, another.External.Labelled = "c-other", "", 0, false
	old := replica.Name
	w.State.Nodes = append(w.State.Nodes, another)
	off, on := plan.Labels(w.Observe())
	if !slices.Equal(off, []string{old}) || len(on) > 0 {
		t.Errorf("off %v, on %v, want %s off first", off, on, old)
	}
}

// While clients are directed to names, a shard that they can't reach gets no slots.
func TestANewShardGetsNoSlotsBeforeItCanBeReached(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.settle()
	w.State.Target.Shards = 3
	w.State.Unexposed = map[int32]string{2: "its Service has no address"}
	waiting := w.waits(func(a plan.Action) {
		if a.Kind == plan.MoveSlots {
			t.Fatalf("slots move: %s", a.Reason)
		}
	})
	if !strings.Contains(waiting, "its Service has no address") {
		t.Fatalf("waiting for %q", waiting)
	}
	w.State.Unexposed = nil
	w.settle()
	w.check(3, 0)
}

// A shard that can't be reached holds up no other.
func TestANewShardThatCanNotBeReachedHoldsUpNoOther(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.settle()
	w.State.Target.Shards = 4
	w.State.Unexposed = map[int32]string{2: "its Service has no address"}
	given := map[int32]bool{}
	waiting := w.waits(func(a plan.Action) {
		if a.Kind == plan.MoveSlots {
			given[w.node(a.Target).Position.Shard] = true
		}
	})
	if given[2] || !given[3] || !strings.Contains(waiting, "its Service has no address") {
		t.Errorf("slots move to shards %v, want 3 only; waiting for %q", given, waiting)
	}
}

// A shard that has slots already needs no first one to open the way.
func TestAShardThatNobodyAnswersForGetsNoMoreSlots(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.settle()
	w.State.Target.Shards = 2
	w.State.Unrouted = map[int32]string{0: "pod x is not ready", 1: "pod y is not ready"}
	waiting := w.waits(func(a plan.Action) {
		if a.Kind == plan.MoveSlots {
			t.Errorf("slots move: %s", a.Reason)
		}
	})
	if !strings.Contains(waiting, "no more slots are moved to it") {
		t.Errorf("waiting for %q", waiting)
	}
}

// A Service leads to a pod that is ready, and a new primary is with its first slot: the
// others follow when somebody answers there.
func TestOneSlotOpensTheWayToANewShard(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.settle()
	w.State.Target.Shards = 3
	w.State.Unrouted = map[int32]string{2: "pod x is not ready"}
	waiting := w.waits(func(plan.Action) {})
	if owned := w.Servers[w.primaryOf(2).Name].Slots.Len(); owned != 1 || !strings.Contains(waiting, "pod x is not ready") {
		t.Fatalf("shard 2 has %d slots, want 1; waiting for %q", owned, waiting)
	}
	w.State.Unrouted = nil
	w.settle()
	w.check(3, 0)
}

// A member of which somebody does not know the name yet becomes no replica: clients
// would be given a question mark for it.
func TestANodeWhoseNameIsNotKnownEverywhereDoesNotServeYet(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.settle()
	w.State.Target.ReplicasPerShard = 2
	joins := func(named bool) bool {
		s := w.Observe()
		for i := range s.Replies {
			for j := range s.Replies[i].Members {
				m := &s.Replies[i].Members[j]
				if named || m.Myself {
					m.Hostname = m.ID + ".example.com"
				}
			}
		}
		return slices.ContainsFunc(plan.Next(s).Actions, func(a plan.Action) bool { return a.Kind == plan.Replicate })
	}
	for range 20 {
		if joins(true) {
			if joins(false) {
				t.Error("it is made a replica although nobody knows its name")
			}
			return
		}
		for _, a := range plan.Next(w.Observe()).Actions {
			w.do(a)
		}
	}
	t.Fatal("the new node never joins")
}
