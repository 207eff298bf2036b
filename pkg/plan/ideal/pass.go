package ideal

import (
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// Pass lets time pass as well as it can go: pods start, copies become whole, pods
// that were told to stop are gone, the servers elect replicas of the dead, and what
// was held back is due. It reports whether anything changed. What is silent stays
// silent, and what may still hold data stays where it is.
func (w *World) Pass() bool {
	changed := len(w.State.Holds) > 0 || len(w.State.Failovers) > 0
	w.State.Holds, w.State.Failovers = nil, nil
	for i := range w.State.Nodes {
		n := &w.State.Nodes[i]
		switch s := w.Servers[n.Name]; {
		case n.Terminating:
			n.Terminating, n.Pod, n.HostGone, changed = false, plan.PodGone, true, true
		case n.Dead() || n.Lifecycle == v1alpha1.LifecycleLeaving:
		case s == nil || n.Pod != plan.PodRunning:
			w.start(n)
			changed = true
		case s.Syncing && w.serving(s.Primary):
			s.Syncing, changed = false, true
		}
	}
	return w.elect() || changed
}

// elect lets the replicas of dead primaries take over, those that are ahead first.
func (w *World) elect() bool {
	elected := false
	for _, dead := range w.State.Nodes {
		primary := w.Servers[dead.Name]
		if primary == nil || !dead.Dead() || primary.Slots.Empty() {
			continue
		}
		var best *Server
		for _, n := range w.State.Nodes {
			s := w.Servers[n.Name]
			if s != nil && !n.Dead() && !s.Silent && s.Primary == primary.ID && !s.Syncing && (best == nil || s.Offset > best.Offset) {
				best = s
			}
		}
		if best != nil && w.promote(best) == nil {
			elected = true
		}
	}
	return elected
}
