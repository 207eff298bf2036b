package sim

import (
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// process returns the server that runs for a node, if one does that was not told
// to stop.
func (w *world) process(name string) (*server, bool) {
	n, p := w.api.nodes[name], w.api.pods[name]
	if n == nil || p == nil || p.owner != n.uid || p.process == nil || !p.process.running || p.deleted != never {
		return nil, false
	}
	return p.process, true
}

// wished reports whether the user wants a node in a position.
func (w *world) wished(p plan.Position) bool {
	return p.Shard < w.wish.shards && p.Index <= w.wish.replicas
}

// copies returns the servers that serve a shard or follow its primary with all of
// its data, in nodes that are to stay.
func (t *truth) copies(shard int32) []*server {
	var out []*server
	for _, n := range t.w.api.sortedNodes() {
		s, ok := t.w.process(n.name)
		if !ok || n.position.Shard != shard || n.lifecycle == v1alpha1.LifecycleLeaving || s.hung || s.host.isolated() || !s.whole {
			continue
		}
		if s.isReplica() && s.repl.up || !s.isReplica() && !s.self.slots.Empty() {
			out = append(out, s)
		}
	}
	return out
}

// intact reports whether a shard has its primary and all its replicas.
func (t *truth) intact(shard int32) bool {
	copies := t.copies(shard)
	primaries := 0
	for _, s := range copies {
		if !s.isReplica() {
			primaries++
		}
	}
	return primaries == 1 && len(copies) > t.replicas
}

// disrupts notes that the manager takes a copy or a primary away that works, and
// checks that no other shard still suffers from an earlier one.
func (t *truth) disrupts(shard int32, what string) {
	var before []int32
	for other := range t.disrupted {
		together := t.disrupted[other] == t.w.stats.passes
		if !together && (other >= t.w.wish.shards || t.intact(other)) {
			delete(t.disrupted, other)
		} else if other != shard {
			before = append(before, other)
		}
	}
	justNow := t.faultAt != never && t.w.now-t.faultAt < nodeTimeout // it may not have seen it yet
	if len(before) > 0 && !justNow {
		slices.Sort(before)
		t.violation("one shard at a time", "%s disrupts shard %d while shard %d is not intact", what, shard, before[0])
	}
	t.disrupted[shard] = t.w.stats.passes
}

// handsOver checks a failover from a primary that works.
func (t *truth) handsOver(o *observation, s *server, a plan.Action) {
	r := s.row(s.self.primaryID)
	if a.Mode != plan.Graceful || !s.isReplica() || r == nil {
		return
	}
	if primary, ok := t.w.process(r.peer.name); ok && primary == r.peer && !primary.hung {
		shard := t.w.position(s).Shard
		t.disrupts(shard, "failover")
		t.othersAreWell(shard, "failover")
		to, from := o.node(a.Node), o.node(a.Target)
		rolls := !o.requested && !from.Terminating && from.Position.Shard < o.target.Shards && from.Position.Index <= o.target.ReplicasPerShard
		if rolls && to.Outdated != "" {
			t.violation("one failover a shard", "%s takes over and has to go itself: %s", a.Node, to.Outdated)
		}
	}
}

// othersAreWell checks that what could wait does wait while another shard lacks its
// primary or a copy, whoever took it.
func (t *truth) othersAreWell(shard int32, what string) {
	if t.faultAt != never && t.w.now-t.faultAt < nodeTimeout {
		return // the manager may not have seen it yet
	}
	for other := range t.shards {
		if other != shard && !t.intact(other) {
			t.violation("nothing that could wait while a shard suffers", "%s in shard %d while shard %d is not intact", what, shard, other)
			return
		}
	}
}

// leaves checks a node that is taken out.
func (t *truth) leaves(o *observation, a plan.Action) {
	n := t.w.api.nodes[a.Node]
	s, ok := t.w.process(a.Node)
	if n == nil || !ok {
		return
	}
	if !s.isReplica() && !s.self.slots.Empty() {
		t.violation("no primary leaves", "%s owns %d slots", s, s.self.slots.Len())
	}
	shard := n.position.Shard
	if shard >= o.target.Shards || n.position.Index > o.target.ReplicasPerShard {
		return
	}
	t.disrupts(shard, "taking out "+a.Node)
	if o.node(a.Node).Outdated != "" {
		t.othersAreWell(shard, "taking out "+a.Node)
	}
	others := slices.DeleteFunc(t.copies(shard), func(c *server) bool { return c == s })
	if len(others) <= t.replicas && t.calm() {
		t.violation("copies in a roll", "%s leaves, and shard %d has %d copies, want %d", s, shard, len(others), t.replicas+1)
	}
}

// deletes checks that no node is deleted that serves.
func (t *truth) deletes(a plan.Action) {
	s, ok := t.w.process(a.Node)
	n := t.w.api.nodes[a.Node]
	if t.w.wish.lossAccepted || !ok || n == nil || s.hung || s.host.isolated() || !t.w.api.status.active || s.changedReach > 0 && t.w.now-s.changedReach < nodeTimeout {
		return
	}
	if !t.w.managerReaches(s) {
		if n.lifecycle == v1alpha1.LifecycleActive {
			t.cutOff(s)
		}
		return
	}
	if !s.isReplica() && !s.self.slots.Empty() {
		t.violation("no deletion of a primary", "%s owns %d slots", s, s.self.slots.Len())
	}
	if n.lifecycle == v1alpha1.LifecycleActive && t.w.wished(n.position) && s.whole && s.repl.up && t.serves(s.repl.from) {
		t.violation("no deletion of a copy", "%s is in sync and wished", s)
	}
}

// serves reports whether a server owns slots by its own word.
func (t *truth) serves(s *server) bool {
	return s != nil && s.running && !s.isReplica() && !s.self.slots.Empty()
}

// cutOff checks that a manager that is cut off from most nodes deletes none.
func (t *truth) cutOff(s *server) {
	reached, all := 0, 0
	for _, n := range t.w.api.nodes {
		if other, ok := t.w.process(n.name); ok {
			all++
			if t.w.managerReaches(other) && !other.hung {
				reached++
			}
		}
	}
	if 2*reached < all {
		t.violation("no deletion by a manager that is cut off", "it reaches %d of %d nodes and deletes %s", reached, all, s)
	}
}

// member reports whether a server belongs to a node that is to stay.
func (t *truth) member(s *server) bool {
	n := t.w.api.nodes[s.name]
	running, ok := t.w.process(s.name)
	return n != nil && n.lifecycle != v1alpha1.LifecycleLeaving && ok && running == s
}

// surges checks that a roll has one node more than wished at a time.
func (t *truth) surges() {
	if !t.calm() {
		return
	}
	count, joining := map[plan.Position]int{}, map[plan.Position]bool{}
	for _, n := range t.w.api.nodes {
		p := t.w.api.pods[n.name]
		if n.lifecycle == v1alpha1.LifecycleLeaving || p == nil && n.podCreated || p != nil && (p.deleted != never || p.phase == plan.PodTerminated) {
			continue
		}
		count[n.position]++
		joining[n.position] = joining[n.position] || n.lifecycle == v1alpha1.LifecycleJoining
	}
	double := 0
	for position, nodes := range count {
		if nodes > 1 && joining[position] {
			double++
		}
	}
	if double > 1 {
		t.violation("one surge at a time", "%d positions get a node too many", double)
	}
}
