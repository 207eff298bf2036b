package sim

import (
	"errors"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// askTimeout bounds how long one server may take to answer everything.
const askTimeout = 4 * time.Second

// observation is everything that one pass of the manager knows.
type observation struct {
	nodes    []nodeObject
	pods     map[string]podObject
	replies  map[string]topology.Reply
	asked    []string          // names in the order in which they were asked
	versions map[string]uint64 // of the servers' tables when they were asked
	target   v1alpha1.TargetTopology
	creating bool
	planned  []plan.Node
	holds    map[plan.Position]plan.Hold
	stalled  map[string]plan.Hold
	// requested is whether what is decided is what the user asked for.
	requested bool
}

// observe reads the objects from the cache, or live, and asks every server that
// has an address. Then it goes on.
func (m *manager) observe(live bool, then func(*observation)) {
	o := &observation{pods: map[string]podObject{}, replies: map[string]topology.Reply{}, versions: map[string]uint64{}}
	if live {
		for _, n := range m.w.api.sortedNodes() {
			o.nodes = append(o.nodes, *n)
		}
	} else {
		o.nodes = sorted(m.nodes)
	}
	for _, n := range o.nodes {
		p, ok := m.pods[n.name]
		if live {
			var now *podObject
			if now, ok = m.w.api.pods[n.name]; ok {
				p = *now
			}
		}
		if ok && p.owner == n.uid {
			o.pods[n.name] = p
		}
		if p, ok := o.pods[n.name]; ok && p.phase == plan.PodRunning && p.ip != "" {
			o.asked = append(o.asked, n.name)
		}
	}
	waiting := len(o.asked)
	finish := func() { m.complete(o); then(o) }
	if waiting == 0 {
		m.later(time.Millisecond, finish)
		return
	}
	for _, name := range o.asked {
		m.ask(o, name, func() {
			waiting--
			if waiting == 0 {
				finish()
			}
		})
	}
}

// ask puts all questions to one server.
func (m *manager) ask(o *observation, name string, done func()) {
	s := m.server(o, name)
	fail := func(d time.Duration, err error) {
		m.later(d, func() {
			o.replies[name] = topology.Reply{Node: name, PodIP: o.pods[name].ip, Err: err, ID: m.recordedID(o, name)}
			done()
		})
	}
	switch {
	case s == nil || !m.w.managerReaches(s):
		fail(2*time.Second, errors.New("dial: i/o timeout"))
	case !s.running:
		fail(m.latency(), errors.New("dial: connection refused"))
	case s.hung:
		fail(askTimeout, errors.New("read: i/o timeout"))
	case m.w.chance(0.002):
		fail(m.latency(), errors.New("read: connection reset by peer"))
	default:
		m.later(m.latency(), func() {
			if !s.running || s.hung || !m.w.managerReaches(s) {
				fail(m.latency(), errors.New("read: connection reset by peer"))
				return
			}
			o.replies[name], o.versions[name] = s.reply(), s.version
			done()
		})
	}
}

// server is the process at the address that the manager has for a node.
func (m *manager) server(o *observation, name string) *server {
	p, ok := o.pods[name]
	if !ok {
		return nil
	}
	return p.process
}

func (m *manager) recordedID(o *observation, name string) string {
	for _, n := range o.nodes {
		if n.name == name {
			return n.nodeID
		}
	}
	return ""
}

// complete derives the rest of an observation, as the controller does.
func (m *manager) complete(o *observation) {
	assigned := false
	for _, name := range o.asked {
		assigned = assigned || o.replies[name].Info.SlotsAssigned > 0 || o.replies[name].Err != nil
	}
	o.target, o.creating = m.target(assigned)
	m.noteSilence(o)
	for _, n := range o.nodes {
		o.planned = append(o.planned, m.planNode(o, n))
	}
	m.noteDeaths(o)
	m.w.truth.sees(o)
	o.stalled = m.stalls.Note(o.answers(), time.Unix(0, 0).Add(m.w.now))
}

// node returns a node as the planner was told of it.
func (o *observation) node(name string) plan.Node {
	for _, n := range o.planned {
		if n.Name == name {
			return n
		}
	}
	return plan.Node{}
}

// answers are the replies in the order in which they were asked for.
func (o *observation) answers() []topology.Reply {
	var out []topology.Reply
	for _, name := range o.asked {
		out = append(out, o.replies[name])
	}
	return out
}

// target is the shape to work towards. Slots count as assigned while somebody who
// may have them does not answer.
func (m *manager) target(assigned bool) (v1alpha1.TargetTopology, bool) {
	status := &m.w.api.status
	if !status.active && assigned && status.target != nil {
		return *status.target, true
	}
	return v1alpha1.TargetTopology{Shards: m.w.wish.shards, ReplicasPerShard: m.w.wish.replicas}, !status.active
}

// noteSilence remembers since when each node has not answered, and since when it
// has no pod.
func (m *manager) noteSilence(o *observation) {
	for _, n := range o.nodes {
		if r, asked := o.replies[n.name]; asked && r.Err == nil {
			delete(m.silentSince, n.name)
		} else if _, ok := m.silentSince[n.name]; !ok {
			m.silentSince[n.name] = m.w.now
		}
		if _, there := o.pods[n.name]; there {
			delete(m.goneSince, n.name)
		} else if _, ok := m.goneSince[n.name]; !ok {
			m.goneSince[n.name] = m.w.now
		}
	}
}

// planNode is one node as the planner is told of it.
func (m *manager) planNode(o *observation, n nodeObject) plan.Node {
	p, ok := o.pods[n.name]
	node := plan.Node{Name: n.name, Position: n.position, Lifecycle: n.lifecycle, NodeID: n.nodeID, Role: n.role, Age: m.w.now - n.created}
	if n.image != m.w.wish.image {
		node.Outdated = "its image differs"
	}
	if node.NodeID == "" {
		node.NodeID = o.replies[n.name].ID
	}
	if since, silent := m.silentSince[n.name]; silent {
		node.Silent = m.w.now - since
	}
	if !ok {
		node.Pod = plan.PodNone
		if n.podCreated {
			node.Pod = plan.PodGone
			node.HostGone = m.hostGone(n)
		}
		return node
	}
	node.Pod, node.PodIP, node.InSync, node.Detail = p.phase, p.ip, p.inSync, p.detail
	if p.deleted != never {
		node.Terminating, node.TerminatingFor = true, m.w.now-p.deleted
	}
	return node
}

// hostGone reports whether nothing of a pod that is gone can run any more: the
// host is gone too, or is at work and had the time to end it.
func (m *manager) hostGone(n nodeObject) bool {
	since, gone := m.goneSince[n.name]
	return n.host == nil || !n.host.registered || n.host.ready && m.w.now-n.host.readySince >= cleaning && gone && m.w.now-since >= settled
}

// settled is how long after the end of a pod object its host has to be called ready
// for it to be sure that the containers have ended: the condition may be that of a
// host that was lost forty seconds ago, and a kubelet takes its time.
const settled = 90 * time.Second

// cleaning is how long a host that has come back takes at most to end what it should
// not run any more.
const cleaning = 30 * time.Second

// noteDeaths says how long the positions of nodes that died before they joined
// have to wait. An outdated node that lives does not make up for a death.
func (m *manager) noteDeaths(o *observation) {
	o.holds = map[plan.Position]plan.Hold{}
	for _, n := range o.planned {
		switch {
		case n.Lifecycle == v1alpha1.LifecycleJoining && n.Dead():
			m.holds.died(n.Position, n.Name, m.w.now)
			o.holds[n.Position] = plan.Hold{Remaining: m.holds.remaining(n.Position, m.w.now), Reason: "node " + n.Name + " died before it joined"}
		case n.Lifecycle == v1alpha1.LifecycleActive && !n.Dead() && n.Outdated == "":
			delete(m.holds, n.Position)
		}
	}
}

// state is what the planner is asked with.
func (m *manager) state(o *observation) plan.State {
	s := plan.State{
		Cluster: "c", UID: "u", Target: o.target, Creating: o.creating, Nodes: o.planned, Holds: o.holds, Stalled: o.stalled,
		Recorded: m.w.api.status.recorded, Failovers: map[int32]time.Duration{}, LossAccepted: m.w.wish.lossAccepted,
	}
	for shard, at := range m.failovers {
		s.Failovers[shard] = m.w.now - at
	}
	s.Replies = o.answers()
	return s
}
