package sim

import (
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// asking is a failover that a manager asked for.
type asking struct {
	at   time.Duration
	life int
	mode plan.FailoverMode
}

// asks checks a failover against those before it and against what the manager saw:
// a manager never forgets within its life what it asked for.
func (t *truth) asks(o *observation, a plan.Action) {
	now := asking{at: t.w.now, life: t.w.m.life, mode: a.Mode}
	for shard, before := range t.asked {
		if before.life != now.life {
			continue
		}
		ago := now.at - before.at
		if shard == a.Position.Shard && ago < manualTimeout {
			t.violation("one failover at a time", "shard %d, %s after the last one was asked for", shard, ago)
		}
		if shard != a.Position.Shard && ago < 20*time.Millisecond && before.mode == plan.Force && a.Mode == plan.Force {
			t.violation("one vote at a time", "shards %d and %d share an epoch", shard, a.Position.Shard)
		}
	}
	t.asked[a.Position.Shard] = now
	if p := t.w.api.pods[a.Target]; a.Mode == plan.Graceful && p != nil && p.deleted != never && t.w.now-p.deleted > preStop {
		t.violation("no handover that meets the server's own", "%s was told to stop %s ago", a.Target, t.w.now-p.deleted)
	}
	t.best(o, a)
}

// best checks that of the copies that were in sync the one with most data is
// promoted, as far as the manager could see.
func (t *truth) best(o *observation, a plan.Action) {
	chosen := o.replies[a.Node]
	self, ok := chosen.Self()
	if !ok || a.Mode == plan.Graceful {
		return
	}
	for _, n := range o.planned {
		other := o.replies[n.Name]
		row, ok := other.Self()
		if !ok || !n.InSync || n.Dead() || n.Lifecycle == v1alpha1.LifecycleLeaving || row.Role != topology.RoleReplica || row.PrimaryID != self.PrimaryID {
			continue
		}
		if other.Replication.HasCopy() && other.Replication.Offset > chosen.Replication.Offset {
			t.violation("the best copy is promoted", "%s has more than %s", n.Name, a.Node)
		}
	}
}

// moves checks that slots go to a node only that serves its own, and that a source
// that failed to move some is given time.
func (t *truth) moves(o *observation, a plan.Action) {
	if r := o.replies[a.Target]; r.Err == nil && r.Info.State != topology.StateOK {
		t.violation("slots only to who is well", "%s calls the cluster %s", a.Target, r.Info.State)
	}
	last, failed := lastExport(o.replies[a.Node])
	if !failed {
		return
	}
	if first, seen := t.failed[sighting{t.w.m.life, last}]; seen && t.w.now-first < 5*time.Second {
		t.violation("failed migrations are given time", "%s is asked again %s after the last attempt was seen to have failed", a.Node, t.w.now-first)
	}
}

// sighting is that a life of the manager saw a migration or a node.
type sighting struct {
	life int
	name string
}

// sees notes who answers a manager, and the migrations that it sees to have failed.
func (t *truth) sees(o *observation) {
	for name, r := range o.replies {
		if r.Err == nil {
			t.answered[name] = t.w.now
		}
		job, failed := lastExport(r)
		key := sighting{t.w.m.life, job}
		if _, seen := t.failed[key]; failed && !seen {
			t.failed[key] = t.w.now
		}
	}
}

// lastExport returns the newest migration from a server, and whether it failed.
func lastExport(r topology.Reply) (job string, failed bool) {
	for _, m := range r.Migrations {
		if m.Export {
			return m.Name, m.Failed()
		}
	}
	return "", false
}

// creates checks that no position gets one node after the other.
func (t *truth) creates(a plan.Action) {
	var recent []time.Duration
	for _, at := range t.created[a.Position] {
		if t.w.now-at < 10*time.Second {
			recent = append(recent, at)
		}
	}
	t.created[a.Position] = append(recent, t.w.now)
	if len(recent) > 3 {
		t.violation("no hot loop", "%d nodes for %v in ten seconds", len(recent)+1, a.Position)
	}
}
