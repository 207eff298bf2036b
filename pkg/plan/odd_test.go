package plan_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// oddities are what may be wrong with an observation.
var oddities = []func(*rand.Rand, *plan.State){
	func(r *rand.Rand, s *plan.State) {
		pick(r, s.Nodes).Pod = []plan.PodPhase{plan.PodNone, plan.PodPending, plan.PodTerminated, plan.PodGone}[r.IntN(4)]
	},
	func(r *rand.Rand, s *plan.State) {
		n := pick(r, s.Nodes)
		n.Terminating, n.TerminatingFor = true, time.Duration(r.IntN(40))*time.Second
	},
	func(r *rand.Rand, s *plan.State) { pick(r, s.Nodes).HostGone = true },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Nodes).InSync = r.IntN(2) == 0 },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Nodes).Silent = time.Duration(r.IntN(120)) * time.Second },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Nodes).NodeID = "" },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Nodes).NodeID = pick(r, s.Nodes).NodeID },
	func(r *rand.Rand, s *plan.State) {
		pick(r, s.Nodes).Lifecycle = []v1alpha1.Lifecycle{v1alpha1.LifecycleJoining, v1alpha1.LifecycleActive, v1alpha1.LifecycleLeaving}[r.IntN(3)]
	},
	func(r *rand.Rand, s *plan.State) { pick(r, s.Nodes).Position = pick(r, s.Nodes).Position },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Nodes).Outdated = "image" },
	func(r *rand.Rand, s *plan.State) {
		pick(r, s.Nodes).Role = []topology.Role{topology.RolePrimary, topology.RoleReplica, topology.RoleUnknown}[r.IntN(3)]
	},
	func(r *rand.Rand, s *plan.State) { pick(r, s.Nodes).Age = time.Duration(r.IntN(600)) * time.Second },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Nodes).PodIP = "" },
	func(r *rand.Rand, s *plan.State) { s.Target.Shards = int32(1 + r.IntN(4)) },
	func(r *rand.Rand, s *plan.State) { s.Target.ReplicasPerShard = int32(r.IntN(3)) },
	func(_ *rand.Rand, s *plan.State) { s.Creating = true },
	func(_ *rand.Rand, s *plan.State) { s.LossAccepted = true },
	func(r *rand.Rand, s *plan.State) {
		if len(s.Nodes) > 1 {
			i := r.IntN(len(s.Nodes))
			s.Nodes = slices.Delete(s.Nodes, i, i+1)
		}
	},
	func(r *rand.Rand, s *plan.State) { pick(r, s.Replies).Err = errors.New("no route") },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Replies).Members = nil },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Replies).Info.State = "fail" },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Replies).Replication.LinkUp = r.IntN(2) == 0 },
	func(r *rand.Rand, s *plan.State) { pick(r, s.Replies).Replication.SyncInProgress = true },
	func(r *rand.Rand, s *plan.State) { m := row(r, s); m.Failed, m.LinkUp = true, false },
	func(r *rand.Rand, s *plan.State) { row(r, s).PFail = true },
	func(r *rand.Rand, s *plan.State) { m := row(r, s); m.NoAddr, m.IP, m.Port = true, "", 0 },
	func(r *rand.Rand, s *plan.State) { row(r, s).Handshake = true },
	func(r *rand.Rand, s *plan.State) { row(r, s).Role = topology.RoleUnknown },
	func(r *rand.Rand, s *plan.State) {
		m := row(r, s)
		m.Role, m.PrimaryID = topology.RoleReplica, row(r, s).ID
	},
	func(r *rand.Rand, s *plan.State) { m := row(r, s); m.Role, m.PrimaryID = topology.RolePrimary, "" },
	func(r *rand.Rand, s *plan.State) { row(r, s).ConfigEpoch = uint64(r.IntN(9)) },
	func(r *rand.Rand, s *plan.State) {
		row(r, s).Slots = slots.FromRanges(slots.Range{Start: uint16(r.IntN(9000)), End: uint16(r.IntN(16384))})
	},
	func(r *rand.Rand, s *plan.State) { row(r, s).ID = fmt.Sprintf("%040x", r.Int64()) },
}

func pick[T any](r *rand.Rand, list []T) *T { return &list[r.IntN(len(list))] }

func row(r *rand.Rand, s *plan.State) *topology.Member {
	if reply := pick(r, s.Replies); len(reply.Members) > 0 {
		return pick(r, reply.Members)
	}
	return &topology.Member{}
}

// lone reports whether a node that runs alone holds the keys of its slots: no other one
// that answers has a copy.
func lone(s plan.State, name string) bool {
	if i := slices.IndexFunc(s.Nodes, func(n plan.Node) bool { return n.Name == name }); s.Nodes[i].Pod != plan.PodRunning || s.Nodes[i].Dead() {
		return false
	}
	view := topology.Merge(s.Replies)
	v, ok := view.Nodes[name]
	if !ok || !v.Reachable || v.Role != topology.RolePrimary || v.Slots.Empty() || v.Keys == 0 {
		return false
	}
	for _, other := range view.ReplicasOf(v.ID) {
		if other.Reachable && other.Replication.HasCopy() {
			return false
		}
	}
	return true
}

// What is observed may be half wrong. The answer then may be to wait, but it is the
// same for every order, of one kind, not two disruptions, and nobody's last copy.
func TestOddObservationsGetOneSoundAnswer(t *testing.T) {
	for seed := range 1000 {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		w := newWorld(t, int32(1+random.IntN(3)), int32(random.IntN(3)))
		w.settle()
		for _, server := range w.Servers {
			server.Keys = 1
		}
		s := w.Observe()
		for i := range s.Replies { // rows may be shared between replies
			s.Replies[i].Members = slices.Clone(s.Replies[i].Members)
		}
		for range 1 + random.IntN(5) {
			oddities[random.IntN(len(oddities))](random, &s)
		}
		want := plan.Next(s)
		disruptions := 0
		for _, a := range want.Actions {
			if a.Kind != want.Actions[0].Kind || a.Reason == "" {
				t.Errorf("seed %d: %+v", seed, want.Actions)
			}
			switch a.Kind {
			case plan.Failover:
				if a.Mode != plan.Takeover { // which nobody has to vote for
					disruptions++
				}
			case plan.DeleteNode, plan.Leave:
				if lone(s, a.Node) && !s.LossAccepted {
					t.Errorf("seed %d: %s of %s, which alone holds its slots: %s", seed, a.Kind, a.Node, a.Reason)
				}
			}
		}
		if disruptions > 1 {
			t.Errorf("seed %d: %d disruptions at once: %+v", seed, disruptions, want.Actions)
		}
		for range 3 {
			random.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
			random.Shuffle(len(s.Replies), func(i, j int) { s.Replies[i], s.Replies[j] = s.Replies[j], s.Replies[i] })
			for _, reply := range s.Replies {
				random.Shuffle(len(reply.Members), func(i, j int) { reply.Members[i], reply.Members[j] = reply.Members[j], reply.Members[i] })
			}
			if got := plan.Next(s); !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d: another order gives\n%+v, not\n%+v", seed, got, want)
				break
			}
		}
	}
}
