package sim

import (
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// pingOthers exchanges news with one member by chance, and with every one that was
// not heard of for half the node timeout.
func (s *server) pingOthers() {
	if len(s.rows) < 2 {
		return
	}
	lucky := s.w.rand.IntN(len(s.rows))
	for i, r := range s.rows {
		if r != s.self && (i == lucky || !r.link || s.w.now-r.heard > nodeTimeout/2) {
			s.ping(r, s.w.between(time.Millisecond, 40*time.Millisecond))
		}
	}
}

// broadcast tells every member what changed.
func (s *server) broadcast() {
	s.changed()
	for _, r := range s.rows {
		if r != s.self {
			s.ping(r, s.w.between(time.Millisecond, 15*time.Millisecond))
		}
	}
}

// ping plans an exchange: both sides learn what the other says of itself.
func (s *server) ping(r *row, delay time.Duration) {
	s.w.after(delay, func() {
		if s.running && !s.hung && s.row(r.id) == r {
			s.exchange(r)
		}
	})
}

func (s *server) exchange(r *row) {
	peer := r.peer
	if !s.w.talks(s, peer) {
		if !peer.running || !s.w.connected(s, peer) && s.w.now-r.heard > nodeTimeout/2 {
			s.connect(r, false)
		}
		s.mismatch(r)
		return
	}
	r.heard = s.w.now
	s.connect(r, true)
	back := peer.row(s.id)
	if back == nil {
		peer.stranger(s)
		s.hear(r, peer)
		return
	}
	back.heard = s.w.now
	peer.connect(back, true)
	news := r.news(s) || back.news(peer)
	peer.hear(back, s)
	s.hear(r, peer)
	if news || s.flags() || peer.flags() {
		s.gossipFrom(peer)
		peer.gossipFrom(s)
	}
}

// mismatch notes that another server answers at a member's address: its ID differs,
// so the member is taken to have failed and its address is dropped.
func (s *server) mismatch(r *row) {
	if r.noaddr || r.peer.running {
		return
	}
	if other := s.w.at(r.peer.ip); other != nil && s.w.talks(s, other) {
		r.noaddr = true
		s.changed()
		s.failed(r)
	}
}

// news reports whether either side changed since they last spoke.
func (r *row) news(viewer *server) bool {
	return r.seen != r.peer.version+1 || r.seenOwn != viewer.version
}

// flags reports whether the server suspects anybody.
func (s *server) flags() bool {
	for _, r := range s.rows {
		if r.pfail || r.fail {
			return true
		}
	}
	return false
}

// stranger is a ping of somebody who is not in the table. The one who sends it
// knows us, so it will introduce itself; a forgotten one is ignored for a while.
func (s *server) stranger(from *server) {
	if until, banned := s.blacklist[from.id]; banned && s.w.now < until {
		return
	}
	s.w.after(s.w.between(5*time.Millisecond, 300*time.Millisecond), func() {
		if from.running && s.running && from.row(s.id) != nil && s.w.connected(s, from) {
			s.handshake(from)
		}
	})
}

// meet is CLUSTER MEET: both sides get to know each other by a handshake, which is
// given up after the node timeout.
func (s *server) meet(ip string) {
	peer := s.w.at(ip)
	if peer == nil || peer == s {
		return
	}
	delete(s.blacklist, peer.id)
	s.w.after(s.w.between(5*time.Millisecond, 200*time.Millisecond), func() {
		if !s.running || s.hung || !s.w.talks(s, peer) {
			return
		}
		s.handshake(peer)
		s.w.after(s.w.between(time.Millisecond, 200*time.Millisecond), func() {
			if peer.running && !peer.hung && s.w.talks(peer, s) {
				peer.handshake(s)
			}
		})
	})
}

// handshake puts a member into the table and takes in what it says.
func (s *server) handshake(peer *server) {
	if until, banned := s.blacklist[peer.id]; banned && s.w.now < until {
		return
	}
	r := s.learn(peer)
	s.ping(r, time.Millisecond)
}

// hear takes in what a member says about itself.
func (s *server) hear(r *row, from *server) {
	s.unflag(r)
	s.currentEpoch = max(s.currentEpoch, from.currentEpoch)
	if !r.news(s) {
		return
	}
	before := *r
	if from.isReplica() {
		if r.primary && !r.slots.Empty() {
			r.slots = slots.Set{}
		}
		r.primary, r.primaryID = false, from.self.primaryID
		s.primaryMoved(r)
	} else {
		r.primary, r.primaryID = true, ""
		r.epoch = max(r.epoch, from.self.epoch)
		r.unclaimed = r.slots.Minus(from.self.slots)
		s.take(r, from.self.slots)
		s.resolveCollision(r)
		s.correct(r, from)
	}
	r.seen = from.version + 1
	defer func() { r.seenOwn = s.version }()
	if before.primary != r.primary || before.primaryID != r.primaryID || before.epoch != r.epoch || !before.slots.Equal(r.slots) {
		s.changed()
		s.settle()
	}
}

// unflag takes back a suspicion of a member that answers.
func (s *server) unflag(r *row) {
	if r.pfail {
		r.pfail = false
		s.changed()
	}
	if r.fail && (!r.votes() || s.w.now-r.failedAt > 2*nodeTimeout) {
		r.fail = false
		s.changed()
		s.settle()
	}
}

// correct tells a member that claims slots of a higher epoch who owns them.
func (s *server) correct(r *row, from *server) {
	for _, other := range s.rows {
		if other == r || other.epoch <= r.epoch || other.slots.Intersect(from.self.slots).Empty() {
			continue
		}
		s.update(from, other)
	}
}

// update tells a member the epoch and the slots of another.
func (s *server) update(member *server, about *row) {
	news := *about
	s.w.after(time.Millisecond, func() {
		known := member.row(news.id)
		if !member.running || member.hung || !s.w.talks(s, member) || known == nil || known == member.self || known.epoch > news.epoch {
			return
		}
		known.primary, known.primaryID, known.epoch = true, "", news.epoch
		member.take(known, news.slots)
		member.changed()
	})
}

// take gives a member the slots that it claims, as far as its epoch allows.
func (s *server) take(r *row, claimed slots.Set) {
	wanted := claimed.Minus(r.slots)
	if wanted.Empty() {
		return
	}
	mine := s.self
	if s.isReplica() {
		mine = s.row(s.self.primaryID)
	}
	free, lost := wanted, slots.Set{}
	for _, other := range s.rows {
		common := other.slots.Intersect(wanted)
		if common.Empty() || other == r {
			continue
		}
		free = free.Minus(common)
		if other.epoch >= r.epoch {
			common = common.Intersect(other.unclaimed)
		}
		if common.Empty() {
			continue
		}
		other.slots, other.unclaimed = other.slots.Minus(common), other.unclaimed.Minus(common)
		r.slots = r.slots.Union(common)
		if other == mine {
			lost = lost.Union(common)
		}
	}
	r.slots = r.slots.Union(free)
	if mine != nil && !lost.Empty() {
		s.lost(r, mine, lost)
	}
	s.changed()
	s.settle()
}

// lost is what a server does whose shard lost slots to another member.
func (s *server) lost(r, mine *row, lost slots.Set) {
	failedOver := mine.slots.Empty() && lost.Equal(r.slots)
	if mine == s.self {
		s.pausedUntil = 0
		s.abortExports("Slots are no longer owned by myself")
	}
	switch {
	case failedOver:
		s.w.say("server %s follows %s, which took its shard", s, r.peer)
		s.setPrimary(r)
	case mine == s.self:
		s.w.drop(&s.data, lost)
		s.tellReplicas(func(replica *server) { s.w.drop(&replica.data, lost) })
	}
}

// primaryMoved is for a replica whose primary has become a replica itself: the new
// one is followed.
func (s *server) primaryMoved(r *row) {
	if !s.isReplica() || s.self.primaryID != r.id || r.primaryID == s.id {
		return
	}
	if p := s.row(r.primaryID); p != nil && p.primary && p != s.self {
		s.setPrimary(p)
	}
}

// resolveCollision gives one of two primaries with the same epoch a new one.
func (s *server) resolveCollision(r *row) {
	if s.isReplica() || r.epoch != s.self.epoch || r.id <= s.id {
		return
	}
	s.currentEpoch++
	s.self.epoch = s.currentEpoch
	s.changed()
}

// gossipFrom takes in what a member says of others: whom it suspects, and whom it
// knows.
func (s *server) gossipFrom(from *server) {
	sender := s.row(from.id)
	if sender == nil {
		return
	}
	for _, theirs := range from.rows {
		ours := s.row(theirs.id)
		switch {
		case ours == s.self:
		case ours == nil:
			until, banned := s.blacklist[theirs.id]
			if !banned || s.w.now >= until {
				s.ping(s.learn(theirs.peer), time.Millisecond)
			}
		case sender.votes() && (theirs.pfail || theirs.fail):
			if ours.reports == nil {
				ours.reports = map[string]time.Duration{}
			}
			ours.reports[sender.id] = s.w.now
			s.agree(ours)
		case ours.reports != nil:
			delete(ours.reports, sender.id)
		}
	}
}

// suspectSilent flags members that have not answered for the node timeout.
func (s *server) suspectSilent() {
	for _, r := range s.rows {
		if r == s.self || r.pfail || s.w.now-r.heard < nodeTimeout {
			continue
		}
		r.pfail = true
		s.changed()
		s.w.say("server %s suspects %s", s, r.peer)
		s.agree(r)
		s.settle()
	}
}

// agree turns a suspicion that a majority shares into a failure, and tells all.
func (s *server) agree(r *row) {
	if r.fail || !r.pfail {
		return
	}
	count := 0
	if s.self.votes() {
		count++
	}
	for _, at := range r.reports {
		if s.w.now-at < 2*nodeTimeout {
			count++
		}
	}
	if count < s.quorum() {
		return
	}
	s.w.say("server %s: a majority calls %s failed", s, r.peer)
	s.failed(r)
	for _, other := range s.rows {
		if other == s.self || other == r {
			continue
		}
		peer := other.peer
		s.w.after(s.w.between(time.Millisecond, 20*time.Millisecond), func() {
			if theirs := peer.row(r.id); s.w.talks(s, peer) && theirs != nil && theirs != peer.self && peer.row(s.id) != nil {
				peer.failed(theirs)
			}
		})
	}
}

func (s *server) failed(r *row) {
	if r.fail {
		return
	}
	r.fail, r.pfail, r.failedAt = true, true, s.w.now
	s.changed()
	s.settle()
	s.consider()
}
