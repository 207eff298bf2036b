package ideal

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// Server is one Valkey server as the planner can see it.
type Server struct {
	// ID that it calls itself.
	ID string
	// Epoch is its config epoch.
	Epoch uint64
	// Primary is the ID of the server that it follows; empty for a primary.
	Primary string
	// Slots that it owns.
	Slots slots.Set
	// Keys that it holds.
	Keys int64
	// Offset of its replication stream, in bytes.
	Offset int64
	// Knows are the IDs in its table, its own among them.
	Knows map[string]bool
	// Syncing is true for a replica whose copy is not whole yet.
	Syncing bool
	// Silent is true while it runs but does not answer the manager.
	Silent bool
	// Suspected is true while the others don't hear of it either.
	Suspected bool
}

// World is a Kubernetes and its servers. Its fields may be changed between two
// observations: that is how something happens.
type World struct {
	// State is what the planner is told, but for the replies, which Observe adds.
	State plan.State
	// Servers by node name. That of a dead node stays until the node is deleted: the
	// others have it in their tables.
	Servers map[string]*Server
	// Failovers counts those that were carried out.
	Failovers int
	// Assigned counts how often each slot was handed out in creation.
	Assigned [slots.Count]int

	made int
}

// New returns a world in which a cluster of a shape is wished and nothing exists.
func New(cluster string, target v1alpha1.TargetTopology) *World {
	return &World{
		State:   plan.State{Cluster: cluster, UID: "uid-" + cluster, Creating: true, Target: target},
		Servers: map[string]*Server{},
	}
}

// From returns the world that a state was observed in. Members of the servers'
// tables that belong to no node are left out.
func From(s plan.State) *World {
	w := &World{State: s, Servers: map[string]*Server{}}
	w.State.Nodes = slices.Clone(s.Nodes)
	w.State.Holds, w.State.Failovers = maps.Clone(s.Holds), maps.Clone(s.Failovers)
	w.State.Recorded = maps.Clone(s.Recorded)
	view := topology.Merge(s.Replies)
	for i := range w.State.Nodes {
		n := &w.State.Nodes[i]
		v, asked := view.Nodes[n.Name]
		if asked && v.ID != "" {
			n.NodeID = v.ID
		}
		if n.NodeID == "" {
			continue // nothing ran in its pod yet
		}
		server := &Server{ID: n.NodeID, Slots: view.Owners[n.NodeID], Knows: map[string]bool{n.NodeID: true}, Silent: true}
		w.Servers[n.Name] = server
		if !asked {
			continue
		}
		server.Silent = !v.Reachable
		server.Epoch, server.Keys, server.Offset = v.ConfigEpoch, v.Keys, v.Replication.Offset
		if v.Role == topology.RoleReplica {
			server.Primary, server.Syncing = v.PrimaryID, v.Reachable && !v.Replication.HasCopy()
		}
		for id := range v.Knows {
			server.Knows[id] = true
		}
	}
	return w
}

// Observe returns what the planner is told. Slots that are owned are recorded, as
// the manager does it in the cluster's status.
func (w *World) Observe() plan.State {
	w.State.Replies = nil
	if w.State.Recorded == nil {
		w.State.Recorded = map[int32]slots.Set{}
	}
	for i := range w.State.Nodes {
		n := &w.State.Nodes[i]
		s := w.Servers[n.Name]
		if s == nil || n.Dead() {
			continue
		}
		if s.Silent {
			w.State.Replies = append(w.State.Replies, topology.Reply{Node: n.Name, PodIP: n.PodIP, ID: s.ID, Err: errSilent})
			continue
		}
		if !s.Slots.Empty() {
			w.State.Recorded[n.Position.Shard] = s.Slots
		}
		n.InSync = !s.Slots.Empty() || s.Primary != "" && !s.Syncing
		w.State.Replies = append(w.State.Replies, w.reply(n, s))
	}
	return w.State
}

var errSilent = fmt.Errorf("it was silent when it was last asked")

// reply is what a server says when it is asked.
func (w *World) reply(n *plan.Node, s *Server) topology.Reply {
	r := topology.Reply{Node: n.Name, PodIP: n.PodIP, ID: s.ID, Keys: s.Keys, Info: topology.ClusterInfo{State: topology.StateOK}}
	for _, other := range w.State.Nodes {
		if o := w.Servers[other.Name]; o != nil && s.Knows[o.ID] {
			r.Members = append(r.Members, row(s, other, o))
		}
	}
	r.Replication = topology.Replication{Role: topology.RolePrimary, Offset: s.Offset}
	if s.Primary != "" {
		up := w.serving(s.Primary) && !s.Syncing
		r.Replication = topology.Replication{
			Role: topology.RoleReplica, Offset: s.Offset, LinkUp: up, SyncInProgress: s.Syncing,
			LinkDownSeconds: 3, HasLinkDownSeconds: !up,
		}
	}
	return r
}

// row is the entry of a server in a viewer's table.
func row(viewer *Server, n plan.Node, s *Server) topology.Member {
	m := topology.Member{
		ID: s.ID, IP: n.PodIP, Port: 6379, BusPort: 16379, Role: topology.RolePrimary,
		ConfigEpoch: s.Epoch, LinkUp: true, Slots: s.Slots, Myself: viewer == s,
	}
	if s.Primary != "" {
		m.Role, m.PrimaryID = topology.RoleReplica, s.Primary
	}
	if n.Dead() && !n.Terminating {
		m.Failed, m.LinkUp, m.Flags = true, false, []string{"fail"}
	}
	if s.Suspected && viewer != s {
		m.PFail, m.LinkUp, m.Flags = true, false, []string{"fail?"}
	}
	return m
}

// Node returns the node of a name, or nil.
func (w *World) Node(name string) *plan.Node {
	for i := range w.State.Nodes {
		if w.State.Nodes[i].Name == name {
			return &w.State.Nodes[i]
		}
	}
	return nil
}

// ByID returns the server that calls itself id, or nil.
func (w *World) ByID(id string) *Server {
	for _, s := range w.Servers {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// serving reports whether the server with an ID runs.
func (w *World) serving(id string) bool {
	for _, n := range w.State.Nodes {
		if s := w.Servers[n.Name]; s != nil && s.ID == id {
			return n.Pod == plan.PodRunning
		}
	}
	return false
}
