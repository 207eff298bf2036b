package sim

import (
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// decided checks a decision against what the planner was told.
func (t *truth) decided(o *observation, d plan.Decision) {
	t.shards = min(t.w.wish.shards, o.target.Shards)
	t.replicas = int(min(t.w.wish.replicas, o.target.ReplicasPerShard))
	t.upToDate(o, d)
	t.followsUp(o, d)
	known := map[string]plan.Node{}
	for _, n := range o.planned {
		known[n.Name] = n
	}
	for _, a := range d.Actions {
		if a.Kind != d.Actions[0].Kind {
			t.violation("one kind", "a batch mixes %s and %s", a.Kind, d.Actions[0].Kind)
		}
		if a.Reason == "" {
			t.violation("reasons", "%s %s has none", a.Kind, a.Node)
		}
		n, exists := known[a.Node]
		switch a.Kind {
		case plan.DeleteNode, plan.CreateNode, plan.Leave, plan.Activate:
		default:
			if exists && n.Terminating {
				t.violation("no command to the dying", "%s to %s, whose pod was told to stop", a.Kind, a.Node)
			}
		}
	}
}

// about checks an action against the truth, just before it is carried out.
func (t *truth) about(o *observation, a plan.Action) {
	s := t.w.m.server(o, a.Node)
	switch a.Kind {
	case plan.Forget:
		t.forgets(a)
	case plan.MoveSlots:
		t.moves(o, a)
	case plan.Failover:
		t.asks(o, a)
		if s != nil && s.running {
			t.promotes(s, a)
			t.handsOver(o, s, a)
		}
	case plan.AssignSlots, plan.ReplaceLost:
		if s != nil && s.running {
			t.givesAway(s, a)
		}
	case plan.Replicate:
		if s != nil && s.running && !s.isReplica() && s.data.len() > 0 {
			t.violation("no replica of what has data", "%s is told to follow %s", s, short(a.TargetID))
		}
		t.follows(a)
	case plan.DeleteNode:
		t.forgotten(o, a)
		t.waitsForSilent(o, a)
		t.deletes(a)
	case plan.Leave:
		t.leaves(o, a)
	}
}

// follows checks that a replica is given a primary of its own shard.
func (t *truth) follows(a plan.Action) {
	for _, s := range t.w.servers {
		if s.id == a.TargetID && t.w.position(s).Shard != t.positions[a.Node].Shard {
			t.violation("replicas follow their own shard", "%s of shard %d is told to follow %s of shard %d",
				a.Node, t.positions[a.Node].Shard, s, t.w.position(s).Shard)
		}
	}
}

// live returns the running server of a node that is to stay, by its ID.
func (t *truth) live(id string) (*server, bool) {
	for _, n := range t.w.api.nodes {
		if s, ok := t.w.process(n.name); ok && s.id == id {
			return s, n.lifecycle != v1alpha1.LifecycleLeaving
		}
	}
	return nil, false
}

// forgets checks that the one who is forgotten neither lives nor is needed.
func (t *truth) forgets(a plan.Action) {
	if s, alive := t.live(a.TargetID); alive {
		t.violation("no forget of a live member", "%s forgets %s", a.Node, s)
		return
	}
	if !t.w.api.status.active {
		return
	}
	if s, ok := t.w.process(a.Node); ok {
		if p := s.row(a.TargetID); p != nil && !p.slots.Empty() && t.inherited(s, p) {
			t.violation("no forget by who has not heard of the heir", "%s forgets %s and then knows no owner of %d slots", a.Node, short(a.TargetID), p.slots.Len())
		}
	}
	for _, s := range t.w.servers {
		if s.running && s.isReplica() && s.self.primaryID == a.TargetID && s.whole && !s.writtenOff && t.member(s) {
			if p := s.row(a.TargetID); p != nil && !p.slots.Empty() && t.current(s, p) {
				t.violation("no forget before the failover", "%s forgets %s, whose replica %s is to be promoted", a.Node, short(a.TargetID), s)
			}
		}
	}
}

// supersedes reports whether a server owns slots of a row by a higher epoch.
func (s *server) supersedes(r *row) bool {
	return s.self.primary && s.self.epoch > r.epoch && !s.self.slots.Intersect(r.slots).Empty()
}

// current reports whether the slots of a row are owned by nobody of a higher epoch.
func (t *truth) current(viewer *server, r *row) bool {
	for _, s := range t.w.servers {
		if s != viewer && s.running && s.supersedes(r) {
			return false
		}
	}
	return true
}

// inherited reports whether another node of the cluster owns slots of a row by a higher
// epoch. A server that runs on behind a partition, its node given up, is heard by nobody.
func (t *truth) inherited(viewer *server, r *row) bool {
	for _, n := range t.w.api.nodes {
		s, ok := t.w.process(n.name)
		if ok && s != viewer && s.id != r.id && s.supersedes(r) {
			return true
		}
	}
	return false
}

// promotes checks that a failover goes to a full copy, and takes over by force only
// what nobody can vote on.
func (t *truth) promotes(s *server, a plan.Action) {
	if s.isReplica() && !s.whole {
		t.violation("no promotion of an unsynced replica", "failover %s to %s", a.Mode, s)
	}
	if a.Mode == plan.Takeover && t.majorityFor(s) {
		t.violation("no takeover with a majority", "takeover by %s", s)
	}
}

// majorityFor reports whether a replica could win a vote: more than half of the
// primaries that own slots in its table run, hear it, and are heard by the manager.
func (t *truth) majorityFor(s *server) bool {
	alive := 0
	for _, r := range s.rows {
		since := max(r.peer.changedReach, r.peer.promotedAt)
		if r.votes() && t.w.talks(s, r.peer) && !r.peer.isReplica() && t.w.managerReaches(r.peer) && t.w.now-since > nodeTimeout {
			alive++
		}
	}
	return alive >= s.quorum()
}

// givesAway checks that slots go to an empty node only when no copy of what they
// held can come back.
func (t *truth) givesAway(s *server, a plan.Action) {
	if t.w.wish.lossAccepted || !t.w.api.status.active {
		return
	}
	for _, other := range t.w.servers {
		if other == s || !other.running || !other.whole || t.givenUp(other) {
			continue
		}
		if held := other.claims().Intersect(a.Slots); !held.Empty() {
			t.violation("no slots to an empty node while a copy lives", "%s gets %d slots that %s has", s, held.Len(), other)
			return
		}
	}
	for id, wr := range t.writes {
		if wr.excused || !a.Slots.Contains(wr.slot) {
			continue
		}
		for _, other := range t.w.servers {
			if other != s && other.running && !t.givenUp(other) && other.data.has(id) && !s.data.has(id) {
				t.violation("no slots to an empty node while a copy lives", "%s gets slot %d, write %d of which %s holds", s, wr.slot, id, other)
				return
			}
		}
	}
}

// givenUp reports whether nobody counts on a server any more: its node is gone, or
// somebody said that it runs no more.
func (t *truth) givenUp(s *server) bool {
	n := t.w.api.nodes[s.name]
	p := t.w.api.pods[s.name]
	return s.writtenOff || s.retired || n == nil || p != nil && p.process == s && p.owner != n.uid
}

// claims are the slots that a server owns or has a copy of, by its own table.
func (s *server) claims() slots.Set {
	if !s.isReplica() {
		return s.self.slots
	}
	if p := s.row(s.self.primaryID); p != nil {
		return p.slots
	}
	return slots.Set{}
}

// migrationStarts checks that no server is source and target at once: 9.1 crashes.
func (t *truth) migrationStarts(j *migration) {
	if j.source.busy(false) || j.target.busy(true) {
		t.violation("never source and target at once", "%s to %s", j.source, j.target)
	}
}

// final checks what has to be true of a cluster that has come to rest.
func (t *truth) final() {
	w := t.w
	var members []*server
	for _, n := range w.api.sortedNodes() {
		p := w.api.pods[n.name]
		if p == nil || p.process == nil || !p.process.running {
			t.violation("as wished", "node %s has no server", n.name)
			return
		}
		members = append(members, p.process)
	}
	for _, s := range members {
		for _, other := range members {
			r := s.row(other.id)
			if r == nil || r.fail || r.pfail || !r.slots.Equal(other.self.slots) || r.primary != other.self.primary || r.primaryID != other.self.primaryID {
				t.violation("one owner", "%s and %s are not of one mind about %s", s, other, other)
				return
			}
		}
		if len(s.rows) != len(members) {
			t.violation("as wished", "%s knows %d members, there are %d", s, len(s.rows), len(members))
		}
	}
	t.shape(members)
	t.lostWrites()
}

// shape checks that the cluster is what the user wants.
func (t *truth) shape(members []*server) {
	w := t.w
	if want := int(w.wish.shards * (w.wish.replicas + 1)); len(members) != want {
		t.violation("as wished", "%d nodes, want %d", len(members), want)
		return
	}
	filled := map[plan.Position]bool{}
	for _, s := range members {
		p := w.position(s)
		if !w.wished(p) || filled[p] {
			t.violation("as wished", "%s is node %d of shard %d, which nobody wants or another is", s, p.Index, p.Shard)
		}
		filled[p] = true
	}
	primaries := map[int32]*server{}
	least, most := slots.Count, 0
	for _, s := range members {
		if s.isReplica() {
			continue
		}
		p := w.position(s)
		if primaries[p.Shard] != nil {
			t.violation("as wished", "shard %d has two primaries", p.Shard)
		}
		primaries[p.Shard] = s
		least, most = min(least, s.self.slots.Len()), max(most, s.self.slots.Len())
	}
	if len(primaries) != int(w.wish.shards) || most-least > 1 {
		t.violation("as wished", "%d primaries that own %d to %d slots", len(primaries), least, most)
	}
	for _, s := range members {
		if s.isReplica() && (primaries[w.position(s).Shard].id != s.self.primaryID || !s.repl.up) {
			t.violation("as wished", "%s does not follow the primary of its shard", s)
		}
		if n := w.api.nodes[s.name]; n.image != w.wish.image {
			t.violation("as wished", "node %s is outdated", s.name)
		}
	}
}
