package sim

import (
	"slices"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// The checks here are about what the manager could see and what it made of it.

// enough is how long a node has to be silent before it is replaced.
const enough = time.Minute

// upToDate checks that what may do harm is decided from the nodes as they are: only
// the manager makes them and changes their lifecycles, so that it is behind only
// when it looks at a cache.
func (t *truth) upToDate(o *observation, d plan.Decision) {
	if !d.NeedsLiveView() {
		return
	}
	for _, n := range t.w.api.sortedNodes() {
		i := slices.IndexFunc(o.nodes, func(seen nodeObject) bool { return seen.uid == n.uid })
		if i < 0 || o.nodes[i].lifecycle != n.lifecycle {
			t.violation("harm only from a live view", "%s is decided without knowing that node %s is %s", d.Actions[0].Kind, n.name, n.lifecycle)
			return
		}
	}
}

// followsUp checks that a primary that is proven dead is followed by a replica at
// once, and not when the servers' own election gets to it.
func (t *truth) followsUp(o *observation, d plan.Decision) {
	const atOnce, retry = 3 * time.Second, 12 * time.Second
	for _, dead := range o.planned {
		key := sighting{t.w.m.life, dead.Name}
		heir := t.heir(o, dead)
		if heir == nil {
			delete(t.proven, key)
			continue
		}
		first, seen := t.proven[key]
		if !seen {
			t.proven[key] = t.w.now
			continue
		}
		last, asked := t.asked[dead.Position.Shard]
		busy := len(d.Actions) > 0 && (d.Actions[0].Kind == plan.Failover || d.Actions[0].Kind == plan.Activate)
		if t.w.now-first > atOnce && !busy && (!asked || t.w.now-last.at > retry) {
			t.violation("the dead are followed at once", "%s is known to be dead for %s, and %s could follow", dead.Name, t.w.now-first, heir)
		}
	}
}

// heir returns a replica that could be voted for in place of a primary that is
// proven dead, as far as the manager could see, too.
func (t *truth) heir(o *observation, dead plan.Node) *server {
	if !dead.Proven() || dead.NodeID == "" {
		return nil
	}
	for _, n := range o.planned {
		r, s := o.replies[n.Name], t.w.m.server(o, n.Name)
		self, ok := r.Self()
		if !ok || r.Err != nil || s == nil || !n.InSync || n.Dead() || n.Lifecycle == v1alpha1.LifecycleLeaving {
			continue
		}
		if self.Role != topology.RoleReplica || self.PrimaryID != dead.NodeID || !r.Replication.HasCopy() {
			continue
		}
		if p := s.row(dead.NodeID); s.running && s.isReplica() && s.self.primaryID == dead.NodeID && p != nil && !p.slots.Empty() && t.current(s, p) && t.majorityFor(s) {
			return s
		}
	}
	return nil
}

// forgotten checks that a node that leaves is deleted once nobody that the manager
// asked lists it any more: clients would be sent to it.
func (t *truth) forgotten(o *observation, a plan.Action) {
	n := o.node(a.Node)
	if n.Lifecycle != v1alpha1.LifecycleLeaving || n.Dead() || n.NodeID == "" {
		return
	}
	for _, other := range o.planned {
		r := o.replies[other.Name]
		if other.Dead() || other.Lifecycle == v1alpha1.LifecycleLeaving || r.Err != nil {
			continue
		}
		if slices.ContainsFunc(r.Members, func(m topology.Member) bool { return m.ID == n.NodeID }) {
			t.violation("forgotten before it is deleted", "%s is deleted while %s lists it", a.Node, other.Name)
			return
		}
	}
}

// waitsForSilent checks that a node that does not answer is given time to come back.
func (t *truth) waitsForSilent(o *observation, a plan.Action) {
	last, answered := t.answered[a.Node]
	r, asked := o.replies[a.Node]
	if _, runs := t.w.process(a.Node); !runs || !answered || !asked || r.Err == nil || o.node(a.Node).Lifecycle != v1alpha1.LifecycleActive {
		return
	}
	if ago := t.w.now - last; ago < enough {
		t.violation("the silent are given time", "%s is deleted %s after it answered", a.Node, ago)
	}
}
