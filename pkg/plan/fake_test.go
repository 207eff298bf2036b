package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// server is one Valkey server as the planner can see it.
type server struct {
	id      string
	epoch   uint64
	primary string
	slots   slots.Set
	keys    int64
	offset  int64
	knows   map[string]bool
}

// world is a Kubernetes and its servers in which every action works at once.
type world struct {
	t       *testing.T
	state   State
	servers map[string]*server // by node name
	made    int
	// failovers counts those that the planner asked for.
	failovers int
	// assigned counts how often each slot was handed out.
	assigned [slots.Count]int
}

func newWorld(t *testing.T, shards, replicas int32) *world {
	return &world{t: t, servers: map[string]*server{}, state: State{
		Cluster: "c", UID: "u", Creating: true,
		Target: v1alpha1.TargetTopology{Shards: shards, ReplicasPerShard: replicas},
	}}
}

// observe refreshes what the planner is told.
func (w *world) observe() State {
	w.state.Replies = nil
	if w.state.Recorded == nil {
		w.state.Recorded = map[int32]slots.Set{}
	}
	for i := range w.state.Nodes {
		n := &w.state.Nodes[i]
		s := w.servers[n.Name]
		if s == nil || n.Dead() {
			continue
		}
		if !s.slots.Empty() {
			w.state.Recorded[n.Position.Shard] = s.slots
		}
		n.InSync = !s.slots.Empty() || s.primary != ""
		reply := topology.Reply{Node: n.Name, PodIP: n.PodIP, ID: s.id, Keys: s.keys, Info: topology.ClusterInfo{State: "ok"}}
		for _, other := range w.state.Nodes {
			if o := w.servers[other.Name]; o != nil && s.knows[o.id] {
				reply.Members = append(reply.Members, w.row(s, other, o))
			}
		}
		reply.Replication = topology.Replication{Role: topology.RolePrimary}
		if s.primary != "" {
			up := w.serving(s.primary)
			reply.Replication = topology.Replication{Role: topology.RoleReplica, LinkUp: up, Offset: s.offset, LinkDownSeconds: 3, HasLinkDownSeconds: !up}
		}
		w.state.Replies = append(w.state.Replies, reply)
	}
	return w.state
}

func (w *world) row(viewer *server, n Node, s *server) topology.Member {
	m := topology.Member{
		ID: s.id, IP: n.PodIP, Port: 6379, BusPort: 16379, Role: topology.RolePrimary,
		ConfigEpoch: s.epoch, LinkUp: true, Slots: s.slots, Myself: viewer == s,
	}
	if s.primary != "" {
		m.Role, m.PrimaryID = topology.RoleReplica, s.primary
	}
	if n.Dead() && !n.Terminating {
		m.Failed, m.LinkUp, m.Flags = true, false, []string{"fail"}
	}
	return m
}

func (w *world) node(name string) *Node {
	for i := range w.state.Nodes {
		if w.state.Nodes[i].Name == name {
			return &w.state.Nodes[i]
		}
	}
	w.t.Fatalf("an action names node %q, which does not exist", name)
	return nil
}

// serving reports whether the server with an ID runs.
func (w *world) serving(id string) bool {
	for _, n := range w.state.Nodes {
		if s := w.servers[n.Name]; s != nil && s.id == id {
			return n.Pod == PodRunning
		}
	}
	return false
}

func (w *world) byID(id string) *server {
	for _, s := range w.servers {
		if s.id == id {
			return s
		}
	}
	return nil
}

// do carries out one action as the servers would.
func (w *world) do(a Action) {
	if a.Reason == "" {
		w.t.Errorf("%s has no reason", a.Kind)
	}
	if a.Kind == CreateNode {
		w.create(a)
		return
	}
	n := w.node(a.Node)
	s := w.servers[a.Node]
	switch a.Kind {
	case SetConfigEpoch:
		if len(s.knows) > 1 || s.epoch != 0 {
			w.t.Errorf("the server refuses a config epoch for %s", a.Node)
		}
		s.epoch = a.Epoch
	case AssignSlots:
		for slot := range slots.Count {
			if a.Slots.Contains(slot) {
				w.assigned[slot]++
			}
		}
		s.slots = s.slots.Union(a.Slots)
	case Introduce:
		w.introduce(s, w.servers[a.Target])
	case Replicate:
		if !s.slots.Empty() || !s.knows[a.TargetID] {
			w.t.Errorf("the server refuses to make %s a replica of %s", a.Node, a.TargetID)
		}
		s.primary = a.TargetID
	case Activate:
		n.Lifecycle = v1alpha1.LifecycleActive
	case Leave:
		n.Lifecycle = v1alpha1.LifecycleLeaving
	case Forget:
		if dead := w.byID(a.TargetID); dead != nil && s.primary == a.TargetID {
			w.t.Errorf("the server answers: can't forget my master")
		}
		delete(s.knows, a.TargetID)
	case MoveSlots:
		s.slots = s.slots.Minus(a.Slots)
		w.servers[a.Target].slots = w.servers[a.Target].slots.Union(a.Slots)
	case Failover:
		w.failovers++
		w.promote(a.Node)
	case ReplaceLost:
		for id := range s.knows {
			if o := w.byID(id); o != nil && !o.slots.Intersect(a.Slots).Empty() && id != s.id {
				w.t.Errorf("the server answers: slot is already busy")
			}
		}
		s.slots, s.epoch = s.slots.Union(a.Slots), 1000
	case DeleteNode:
		w.state.Nodes = slices.DeleteFunc(w.state.Nodes, func(n Node) bool { return n.Name == a.Node })
		delete(w.servers, a.Node)
	default:
		w.t.Errorf("unknown action %s", a.Kind)
	}
}

func (w *world) create(a Action) {
	for _, n := range w.state.Nodes {
		if n.Name == a.Node {
			w.t.Fatalf("node %s is made twice", a.Node)
		}
	}
	w.made++
	ip := fmt.Sprintf("10.0.0.%d", w.made)
	id := fmt.Sprintf("%040d", w.made)
	w.state.Nodes = append(w.state.Nodes, Node{
		Name: a.Node, Position: a.Position, Lifecycle: v1alpha1.LifecycleJoining,
		Pod: PodRunning, PodIP: ip, NodeID: id,
	})
	w.servers[a.Node] = &server{id: id, knows: map[string]bool{id: true}}
}

// introduce merges what two servers know, as gossip does in the end.
func (w *world) introduce(a, b *server) {
	all := map[string]bool{}
	for id := range a.knows {
		all[id] = true
	}
	for id := range b.knows {
		all[id] = true
	}
	for id := range all {
		if s := w.byID(id); s != nil {
			for other := range all {
				s.knows[other] = true
			}
		}
	}
}

// promote makes a replica the primary of its shard.
func (w *world) promote(name string) {
	s := w.servers[name]
	old := w.byID(s.primary)
	s.slots, s.primary, s.epoch = old.slots, "", old.epoch+100
	for _, other := range w.servers {
		if other.primary == old.id {
			other.primary = s.id
		}
	}
	old.slots, old.primary = slots.Set{}, s.id
}

// kill ends a node's container for good.
func (w *world) kill(name string) { w.node(name).Pod = PodTerminated }

// settle plans and acts until nothing is left to do.
func (w *world) settle() {
	w.t.Helper()
	for range 200 {
		d := Next(w.observe())
		if d.Complete {
			w.state.Creating = false
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

// check compares the cluster with a shape.
func (w *world) check(shards, replicas int32) {
	w.t.Helper()
	if got, want := len(w.state.Nodes), int(shards*(replicas+1)); got != want {
		w.t.Errorf("%d nodes, want %d", got, want)
	}
	var all slots.Set
	primaries := map[int32]int{}
	for _, n := range w.state.Nodes {
		s := w.servers[n.Name]
		if !all.Intersect(s.slots).Empty() {
			w.t.Errorf("node %s owns slots that another one owns too", n.Name)
		}
		all = all.Union(s.slots)
		if s.primary == "" {
			primaries[n.Position.Shard]++
			continue
		}
		for name, p := range w.servers {
			if p.id == s.primary && w.node(name).Position.Shard != n.Position.Shard {
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
