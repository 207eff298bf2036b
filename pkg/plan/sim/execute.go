package sim

import (
	"errors"
	"fmt"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

var (
	errNotSent = errors.New("dial: connection refused")
	errLost    = errors.New("read: connection reset by peer")
)

// execute carries out one action as pkg/controller/cluster does. It may fail, and
// it may be done although it seems to have failed. It reports whether something
// was begun.
func (m *manager) execute(o *observation, a plan.Action) (bool, error) {
	m.w.stats.count("action " + string(a.Kind) + string(a.Mode))
	m.w.truth.about(o, a)
	if a.Kind == plan.Failover {
		m.failovers[a.Position.Shard] = m.w.now
	}
	if m.w.chance(m.w.quirks.commandErrors) {
		m.w.stats.count("command failed")
		return true, errNotSent
	}
	fresh, err := m.carryOut(o, a)
	if err == nil && m.w.chance(m.w.quirks.commandLost) {
		m.w.stats.count("reply lost")
		return true, errLost
	}
	return fresh, err
}

func (m *manager) carryOut(o *observation, a plan.Action) (bool, error) {
	switch a.Kind {
	case plan.CreateNode:
		m.createNode(a)
		return true, nil
	case plan.DeleteNode:
		m.w.deleteNode(a.Node, true)
		return true, nil
	case plan.Activate:
		return true, m.setLifecycle(a.Node, v1alpha1.LifecycleActive)
	case plan.Leave:
		return true, m.setLifecycle(a.Node, v1alpha1.LifecycleLeaving)
	}
	s := m.server(o, a.Node)
	if s == nil || !s.running || s.hung || !m.w.managerReaches(s) {
		return true, errNotSent
	}
	return m.send(o, s, a)
}

// send is one command at one server.
func (m *manager) send(o *observation, s *server, a plan.Action) (bool, error) {
	switch a.Kind {
	case plan.SetConfigEpoch:
		return true, s.setConfigEpoch(a.Epoch)
	case plan.AssignSlots:
		err := s.addSlots(a.Slots)
		s.whole = s.whole || err == nil
		return true, err
	case plan.ReplaceLost:
		s.delSlots(a.Slots)
		err := s.addSlots(a.Slots)
		if err != nil {
			return true, err
		}
		s.whole = true
		s.bumpEpoch()
		return true, nil
	case plan.Introduce:
		s.meet(a.TargetIP)
		return true, nil
	case plan.Replicate:
		return true, s.replicate(a.TargetID)
	case plan.Forget:
		if s.row(a.TargetID) == nil {
			return true, nil
		}
		return true, s.forget(a.TargetID)
	case plan.Failover:
		return true, s.failover(a.Mode)
	case plan.MoveSlots:
		return m.moveSlots(o, s, a)
	}
	return true, fmt.Errorf("no command for action %s", a.Kind)
}

// moveSlots starts a migration unless the source is busy with one, or the target
// gives slots away: a server that is source and target at once may crash.
func (m *manager) moveSlots(o *observation, s *server, a plan.Action) (bool, error) {
	target := m.server(o, a.Target)
	if target == nil || !target.running || target.hung || !m.w.managerReaches(target) {
		return true, errNotSent
	}
	hasty := m.w.opt.Hooks.Hasty
	for _, job := range target.migrations() {
		if job.Export && !job.Done() && !hasty {
			return false, nil
		}
	}
	for _, job := range s.migrations() {
		if !job.Done() && !hasty {
			return false, nil
		}
	}
	for _, part := range a.Slots.Parts(a.Jobs) {
		if err := s.migrateSlots(part, a.TargetID); err != nil {
			return true, err
		}
	}
	return true, nil
}

func (m *manager) createNode(a plan.Action) {
	if m.w.api.nodes[a.Node] != nil {
		return
	}
	m.w.api.serials++
	m.w.api.nodes[a.Node] = &nodeObject{
		name: a.Node, uid: m.w.api.serials, position: a.Position, lifecycle: v1alpha1.LifecycleJoining,
		image: m.w.wish.image, created: m.w.now,
	}
	m.w.truth.positions[a.Node] = a.Position
	m.w.changedNode(a.Node)
	m.w.truth.surges()
	m.w.truth.creates(a)
}

func (m *manager) setLifecycle(name string, to v1alpha1.Lifecycle) error {
	n := m.w.api.nodes[name]
	if n == nil {
		return fmt.Errorf("node %s not found", name)
	}
	n.lifecycle = to
	m.w.changedNode(name)
	return nil
}

// reconcileNode is the node controller: it makes the pod of a node, once, and
// notes that it did.
func (m *manager) reconcileNode(name string) {
	m.later(m.latency(), func() {
		cached, ok := m.nodes[name]
		if !ok {
			return
		}
		if p, ok := m.pods[name]; ok && p.owner == cached.uid {
			m.recordPod(cached)
			return
		}
		if cached.lifecycle != v1alpha1.LifecycleJoining || cached.podCreated {
			return
		}
		n := m.w.api.nodes[name]
		if n == nil || n.uid != cached.uid || n.lifecycle != v1alpha1.LifecycleJoining || n.podCreated {
			return
		}
		if p := m.w.api.pods[name]; p == nil {
			m.w.createPod(n)
		} else if p.owner != n.uid {
			return // a former node's: its end brings this one here again
		}
		if m.w.chance(m.w.quirks.crash / 4) {
			m.crash("after it made pod " + name)
			return
		}
		m.later(m.latency(), func() { m.recordPod(cached) })
	})
}

// recordPod notes that a node has its pod.
func (m *manager) recordPod(cached nodeObject) {
	if n := m.w.api.nodes[cached.name]; n != nil && n.uid == cached.uid && !n.podCreated {
		n.podCreated = true
		m.w.changedNode(n.name)
	}
}

// markInSync sets the readiness gates and notes the servers' IDs.
func (m *manager) markInSync(o *observation) {
	for _, n := range o.nodes {
		r, asked := o.replies[n.name]
		if p, ok := o.pods[n.name]; ok && p.deleted == never {
			if want, known := o.inSync(n.name); known && p.inSync != want {
				if live := m.w.api.pods[n.name]; live != nil && live.serial == p.serial {
					live.inSync = want
					m.w.changedPod(n.name)
				}
			}
		}
		live := m.w.api.nodes[n.name]
		if live == nil || live.uid != n.uid {
			continue
		}
		id, host, role := n.nodeID, n.host, n.role
		if asked && r.Err == nil {
			id = r.ID
			if self, ok := r.Self(); ok {
				role = self.Role
			}
		}
		if p, ok := o.pods[n.name]; ok && p.host != nil {
			host = p.host
		}
		if id != n.nodeID || host != n.host || role != n.role {
			live.nodeID, live.host, live.role = id, host, role
			m.w.changedNode(n.name)
		}
	}
}

// inSync decides the readiness gate of a node, as the controller does; known is
// false where it stays as it is.
func (o *observation) inSync(name string) (want, known bool) {
	r, asked := o.replies[name]
	self, ok := r.Self()
	if !asked || !ok || r.Err != nil {
		return false, false
	}
	if self.Role == topology.RolePrimary {
		return !self.Slots.Empty(), true
	}
	if r.Replication.InSync() {
		return true, true
	}
	if r.Replication.SyncInProgress {
		return false, true
	}
	for _, other := range o.replies {
		if other.ID == self.PrimaryID && other.Err == nil {
			return false, true
		}
	}
	return false, false
}
