package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

type reply = topology.Reply

// outdate makes every node outdated that is there now.
func (w *world) outdate(reason string) {
	for i := range w.State.Nodes {
		w.State.Nodes[i].Outdated = reason
	}
}

// U-01, U-03
func TestARollReplacesReplicasFirstAndFailsOverOnceAShard(t *testing.T) {
	for _, replicas := range []int32{0, 1, 2} {
		w := newWorld(t, 3, replicas)
		w.settle()
		w.outdate("image valkey:1, not valkey:2")
		old := map[string]bool{}
		for _, n := range w.State.Nodes {
			old[n.Name] = true
		}
		for step := 0; ; step++ {
			s := w.Observe()
			d := plan.Next(s)
			if d.Complete {
				break
			}
			if step > 300 || len(d.Actions) == 0 {
				t.Fatalf("stuck after %d steps: %s", step, d.Waiting)
			}
			for _, a := range d.Actions {
				if a.Kind == plan.CreateNode || a.Kind == plan.Leave || a.Kind == plan.Failover {
					if len(d.Actions) != 1 {
						t.Errorf("%d steps of a roll at once: %v", len(d.Actions), kinds(d))
					}
					if !strings.Contains(a.Reason, "image valkey:1, not valkey:2") {
						t.Errorf("reason %q", a.Reason)
					}
				}
				w.do(a)
			}
			w.atLeastCopies(replicas + 1)
		}
		w.check(3, replicas)
		if w.Failovers != 3 {
			t.Errorf("%d replicas: %d failovers for 3 shards", replicas, w.Failovers)
		}
		for _, n := range w.State.Nodes {
			if old[n.Name] {
				t.Errorf("node %s was not replaced", n.Name)
			}
		}
	}
}

// atLeastCopies checks that no shard ever has fewer members than wished.
func (w *world) atLeastCopies(want int32) {
	w.t.Helper()
	count := map[int32]int32{}
	for _, n := range w.State.Nodes {
		if s := w.Servers[n.Name]; s != nil && (s.Primary != "" || !s.Slots.Empty()) {
			count[n.Position.Shard]++
		}
	}
	for shard, n := range count {
		if n < want {
			w.t.Errorf("shard %d has %d copies, want %d", shard, n, want)
		}
	}
}

// U-05
func TestABadImageStopsAtTheFirstPodAndIsTakenBack(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	before := len(w.State.Nodes)
	w.outdate("image valkey:9, not valkey:nope")
	a := only(t, plan.Next(w.Observe()))
	w.do(a)
	fresh := w.node(a.Node)
	fresh.Pod, fresh.PodIP, fresh.Detail = plan.PodPending, "", "ImagePullBackOff: no such image"
	delete(w.Servers, a.Node)
	for range 10 {
		d := plan.Next(w.Observe())
		if len(d.Actions) != 0 || !strings.Contains(d.Waiting, "ImagePullBackOff") {
			t.Fatalf("want to wait and say why, got %v %q", kinds(d), d.Waiting)
		}
	}
	for i := range w.State.Nodes { // the image is set back
		n := &w.State.Nodes[i]
		n.Outdated = ""
		if n.Name == a.Node {
			n.Outdated = "image valkey:nope, not valkey:9"
		}
	}
	w.settle()
	w.check(3, 1)
	if len(w.State.Nodes) != before || w.Failovers != 0 {
		t.Errorf("%d nodes after %d failovers", len(w.State.Nodes), w.Failovers)
	}
}

func TestNothingRollsWhileTheClusterIsNotWell(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	w.outdate("more memory")
	dead := w.replicasOf(2)[0]
	dead.Pod = plan.PodTerminated
	for range 3 {
		d := plan.Next(w.Observe())
		for _, a := range d.Actions {
			if a.Kind == plan.Failover || a.Kind == plan.Leave || a.Kind == plan.CreateNode && a.Position != dead.Position {
				t.Fatalf("%s of %s while %s is dead", a.Kind, a.Node, dead.Name)
			}
		}
		if len(d.Actions) == 0 || d.Actions[0].Kind == plan.Activate {
			break
		}
		for _, a := range d.Actions {
			w.do(a)
		}
	}
}

// U-05
func TestASuccessorThatDiesStaysToSayWhyAndIsMadeAgainAfterItsHold(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	w.outdate("image old is to be new")
	a := only(t, plan.Next(w.Observe()))
	w.do(a)
	dead := w.node(a.Node)
	dead.Pod, dead.Outdated, dead.Detail = plan.PodTerminated, "", "container ended with exit code 1"
	w.State.Holds = map[plan.Position]plan.Hold{dead.Position: {Remaining: 10 * time.Second, Reason: "it died before it joined"}}
	for range 5 {
		d := plan.Next(w.Observe())
		if len(d.Actions) == 0 {
			if d.Waiting != "it died before it joined" {
				t.Errorf("complete=%v waiting=%q", d.Complete, d.Waiting)
			}
			return
		}
		for _, a := range d.Actions {
			if a.Kind == plan.DeleteNode || a.Kind == plan.CreateNode {
				t.Fatalf("%s: %s", a.Kind, a.Reason)
			}
			w.do(a)
		}
	}
}

// A replica that has to be replaced itself would cost the shard another failover.
func TestAPrimaryThatGoesIsFollowedByOneThatStays(t *testing.T) {
	for name, leave := range map[string]func(*world, *plan.Node){
		"it was told to stop": func(_ *world, n *plan.Node) { n.Terminating = true },
		"it is surplus": func(w *world, n *plan.Node) {
			w.State.Target.ReplicasPerShard = 1
			for i := range w.State.Nodes {
				if other := &w.State.Nodes[i]; other.Position == (plan.Position{Index: 2}) {
					other.Position, n.Position = n.Position, other.Position
					return
				}
			}
		},
	} {
		w := newWorld(t, 2, 2)
		w.settle()
		primary, replicas := w.primaryOf(0), w.replicasOf(0)
		for _, outdated := range replicas {
			for _, r := range replicas {
				r.Outdated = ""
			}
			outdated.Outdated = "image valkey:1, not valkey:2"
			leave(w, primary)
			if a := only(t, plan.Next(w.Observe())); a.Kind != plan.Failover || a.Node == outdated.Name {
				t.Errorf("%s: %s takes over, want the other replica: %+v", name, a.Node, a)
			}
		}
	}
}
