package sim

import (
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// memo spares a pass what it costs to plan the same again: most of the manager's
// passes find exactly what the one before found, and the planner is pure. Only
// decisions that wait for something, or for nothing, are kept.
type memo struct {
	found    uint64
	decision plan.Decision
	// idle is whether the decision has no actions.
	idle bool
	// written is what was found when status and gates were last written down.
	written uint64
	// owners is what it looked like when the slots of the shards were.
	owners uint64
}

var fingerprintSeed = maphash.MakeSeed()

// fingerprint sums up an observation. Of times only the second counts, or the tenth
// of one while they are short: the planner compares them with nothing finer. With
// hooks nothing is summed up: they may look at everything.
func (m *manager) fingerprint(o *observation) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	write := func(values ...any) {
		for _, v := range values {
			maphash.WriteComparable(&h, v)
		}
	}
	write(o.target, o.creating, m.w.wish.lossAccepted, m.w.wish.image, m.w.wish.handover)
	for _, shard := range slices.Sorted(maps.Keys(m.failovers)) {
		if ago := m.w.now - m.failovers[shard]; ago < 3*nodeTimeout {
			write(shard, coarse(ago))
		}
	}
	for i, n := range o.planned {
		object := o.nodes[i]
		write(object.uid, object.lifecycle, object.image, object.nodeID, object.role, n.Pod, n.PodIP, n.InSync, n.Detail, n.HostGone)
		write(coarse(n.TerminatingFor), n.Terminating, o.holds[n.Position].Remaining > 0, o.stalled[n.Name].Remaining > 0)
		if n.Pod == plan.PodRunning {
			write(coarse(n.Silent))
		}
		r, asked := o.replies[n.Name]
		if !asked {
			continue
		}
		write(r.ID, r.Err == nil, o.versions[n.Name], r.Info, r.Keys > 0)
		write(r.Replication.LinkUp, r.Replication.SyncInProgress, r.Replication.LinkDownSeconds)
		for _, job := range r.Migrations {
			write(job.State)
		}
	}
	return h.Sum64()
}

// owners sums up what who owns which slots depends on.
func (m *manager) owners(o *observation) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	for i, n := range o.planned {
		maphash.WriteComparable(&h, o.nodes[i].uid)
		maphash.WriteComparable(&h, o.nodes[i].nodeID)
		maphash.WriteComparable(&h, n.Dead())
		maphash.WriteComparable(&h, o.versions[n.Name])
		maphash.WriteComparable(&h, o.replies[n.Name].Err == nil)
	}
	return h.Sum64()
}

// coarse rounds a time down to what matters of it.
func coarse(d time.Duration) time.Duration {
	if d < 2*time.Second {
		return d.Truncate(100 * time.Millisecond)
	}
	return d.Truncate(time.Second)
}
