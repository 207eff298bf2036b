package ideal

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// Do carries out one action as Kubernetes and the servers would. The error is what
// they would refuse it with; then nothing has changed.
func (w *World) Do(a plan.Action) error {
	if a.Kind == plan.CreateNode {
		return w.create(a)
	}
	n, s := w.Node(a.Node), w.Servers[a.Node]
	if n == nil {
		return fmt.Errorf("%s names node %q, which does not exist", a.Kind, a.Node)
	}
	switch a.Kind {
	case plan.Activate:
		n.Lifecycle = v1alpha1.LifecycleActive
		return nil
	case plan.Leave:
		n.Lifecycle = v1alpha1.LifecycleLeaving
		return nil
	case plan.DeleteNode:
		w.State.Nodes = slices.DeleteFunc(w.State.Nodes, func(n plan.Node) bool { return n.Name == a.Node })
		delete(w.Servers, a.Node)
		return nil
	}
	if s == nil || n.Pod != plan.PodRunning {
		return fmt.Errorf("%s: node %s has no server that runs", a.Kind, a.Node)
	}
	return w.command(s, a)
}

// command is what a server does when it is told to.
func (w *World) command(s *Server, a plan.Action) error {
	switch a.Kind {
	case plan.SetConfigEpoch:
		if len(s.Knows) > 1 || s.Epoch != 0 {
			return fmt.Errorf("the server of %s refuses a config epoch: it has one, or knows others", a.Node)
		}
		s.Epoch = a.Epoch
	case plan.AssignSlots:
		return w.assign(s, a)
	case plan.Introduce:
		other := w.Servers[a.Target]
		if other == nil {
			return fmt.Errorf("there is no server of node %s to introduce", a.Target)
		}
		w.introduce(s, other)
	case plan.Replicate:
		if !s.Slots.Empty() || !s.Knows[a.TargetID] {
			return fmt.Errorf("the server of %s refuses to follow %s: it owns slots, or doesn't know it", a.Node, a.TargetID)
		}
		s.Primary = a.TargetID
	case plan.Forget:
		if s.Primary == a.TargetID && w.ByID(a.TargetID) != nil {
			return errors.New("the server answers: can't forget my master")
		}
		delete(s.Knows, a.TargetID)
	case plan.MoveSlots:
		target := w.Servers[a.Target]
		if target == nil || !a.Slots.Minus(s.Slots).Empty() {
			return fmt.Errorf("the server of %s refuses to move slots: it does not own them all, or there is no server of %s", a.Node, a.Target)
		}
		s.Slots, target.Slots = s.Slots.Minus(a.Slots), target.Slots.Union(a.Slots)
	case plan.Failover:
		return w.promote(s)
	case plan.ReplaceLost:
		return w.replaceLost(s, a)
	default:
		return fmt.Errorf("unknown action %s", a.Kind)
	}
	return nil
}

func (w *World) create(a plan.Action) error {
	if w.Node(a.Node) != nil {
		return fmt.Errorf("node %s is made twice", a.Node)
	}
	w.State.Nodes = append(w.State.Nodes, plan.Node{Name: a.Node, Position: a.Position, Lifecycle: v1alpha1.LifecycleJoining, Zone: a.Zone})
	w.start(w.Node(a.Node))
	return nil
}

// start gives a node a running pod with an empty server.
func (w *World) start(n *plan.Node) {
	for n.NodeID == "" || w.ByID(n.NodeID) != nil {
		w.made++
		n.NodeID = fmt.Sprintf("%040d", w.made)
	}
	n.Pod, n.Detail = plan.PodRunning, ""
	if n.PodIP == "" {
		n.PodIP = fmt.Sprintf("10.%d.%d.%d", w.made>>16, w.made>>8&0xff, w.made&0xff)
	}
	w.Servers[n.Name] = &Server{ID: n.NodeID, Knows: map[string]bool{n.NodeID: true}}
}

// assign hands out slots. A server refuses those that it knows to have an owner.
func (w *World) assign(s *Server, a plan.Action) error {
	if err := w.busy(s, a.Slots); err != nil {
		return err
	}
	for slot := range slots.Count {
		if a.Slots.Contains(slot) {
			w.Assigned[slot]++
		}
	}
	s.Slots = s.Slots.Union(a.Slots)
	return nil
}

// replaceLost hands out lost slots and raises the epoch above all others, so that a
// former owner that comes back doesn't take them again.
func (w *World) replaceLost(s *Server, a plan.Action) error {
	if err := w.busy(s, a.Slots); err != nil {
		return err
	}
	highest := uint64(0)
	for _, other := range w.Servers {
		highest = max(highest, other.Epoch)
	}
	s.Slots, s.Epoch = s.Slots.Union(a.Slots), highest+1000
	return nil
}

func (w *World) busy(s *Server, set slots.Set) error {
	for id := range s.Knows {
		if o := w.ByID(id); o != nil && !o.Slots.Intersect(set).Empty() {
			return errors.New("the server answers: slot is already busy")
		}
	}
	return nil
}

// introduce merges what two servers know, as gossip does in the end.
func (w *World) introduce(a, b *Server) {
	all := maps.Clone(a.Knows)
	maps.Copy(all, b.Knows)
	for _, s := range w.Servers {
		if all[s.ID] {
			maps.Copy(s.Knows, all)
		}
	}
}

// promote makes a replica the primary of its shard.
func (w *World) promote(s *Server) error {
	old := w.ByID(s.Primary)
	if s.Primary == "" || old == nil {
		return errors.New("the server answers: you should send CLUSTER FAILOVER to a replica")
	}
	s.Slots, s.Primary, s.Epoch = old.Slots, "", old.Epoch+100
	for _, other := range w.Servers {
		if other.Primary == old.ID {
			other.Primary = s.ID
		}
	}
	old.Slots, old.Primary = slots.Set{}, s.ID
	w.Failovers++
	return nil
}
