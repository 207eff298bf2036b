package sim

import (
	"errors"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// maxDataAge is how old a replica's data may be for it to stand by itself:
// ten node timeouts, one more and a ping period.
const maxDataAge = 10*nodeTimeout + nodeTimeout + 10*time.Second

// manualFailover is a failover that was asked for and is under way at a replica.
type manualFailover struct {
	until time.Duration
}

// consider lets a replica stand for election once its primary is called failed.
func (s *server) consider() {
	if !s.running || !s.isReplica() || s.electing || s.stopping {
		return
	}
	p := s.row(s.self.primaryID)
	if p == nil || !p.fail || p.slots.Empty() || s.tooOld() {
		return
	}
	s.electing = true
	delay := 500*time.Millisecond + s.w.between(0, 500*time.Millisecond) + time.Duration(s.rank())*time.Second
	s.w.after(delay, func() { s.stand(p) })
}

// tooOld reports whether the replica's data is too old to stand by itself. One
// that never synced has none at all.
func (s *server) tooOld() bool {
	if s.repl.up {
		return false
	}
	return s.repl.downSince == never || s.w.now-s.repl.downSince > maxDataAge
}

// rank counts the replicas of the same primary with more of its data.
func (s *server) rank() int {
	n := 0
	for _, r := range s.rows {
		if r != s.self && !r.primary && r.primaryID == s.self.primaryID && r.peer.offset > s.offset {
			n++
		}
	}
	return n
}

// stand is one try of an automatic election; another follows if it fails.
func (s *server) stand(p *row) {
	if !s.running {
		return
	}
	if s.hung || !s.isReplica() || s.self.primaryID != p.id || !p.fail || p.slots.Empty() || s.row(p.id) != p || s.tooOld() {
		s.electing = false
		return
	}
	s.elect(p, false, func(won bool) {
		if !won {
			s.w.stats.count("election lost")
			s.w.after(4*nodeTimeout, func() { s.stand(p) })
		}
	})
}

// elect asks the voting primaries for a promotion.
func (s *server) elect(p *row, forced bool, done func(won bool)) {
	s.currentEpoch++
	epoch := s.currentEpoch
	votes, asked := 0, 0
	finish := func() {
		asked--
		if asked > 0 {
			return
		}
		won := s.running && !s.hung && s.isReplica() && s.self.primaryID == p.id && votes >= s.quorum()
		s.w.say("replica %s gets %d of %d votes for the place of %s", s, votes, s.quorum(), p.peer)
		if won {
			s.promote(max(epoch, s.self.epoch))
		}
		done(won)
	}
	for _, r := range s.rows {
		if r == s.self || !r.votes() {
			continue
		}
		asked++
		voter := r.peer
		s.w.after(s.w.between(time.Millisecond, 10*time.Millisecond), func() {
			if s.w.talks(s, voter) && voter.vote(s, p, epoch, forced) {
				votes++
			}
			finish()
		})
	}
	if asked == 0 {
		asked = 1
		finish()
	}
}

// vote decides whether a primary votes for a candidate.
func (s *server) vote(candidate *server, p *row, epoch uint64, forced bool) bool {
	dead := s.row(p.id)
	if !s.self.votes() || s.row(candidate.id) == nil || dead == nil {
		return false
	}
	s.currentEpoch = max(s.currentEpoch, epoch)
	switch {
	case epoch < s.currentEpoch || s.lastVote == s.currentEpoch:
		return false
	case !dead.fail && !forced:
		return false
	case dead.votedAt != never && s.w.now-dead.votedAt < 2*nodeTimeout:
		return false
	}
	for _, r := range s.rows {
		if r.epoch > p.epoch && !r.slots.Intersect(p.slots).Empty() {
			s.update(candidate, r) // so that it is not refused for ever
			return false
		}
	}
	s.lastVote = s.currentEpoch
	dead.votedAt = s.w.now
	return true
}

// promote makes a replica the primary in place of the one that it followed.
func (s *server) promote(epoch uint64) {
	old := s.row(s.self.primaryID)
	s.w.say("server %s is promoted with epoch %d, whole=%v", s, epoch, s.whole)
	s.self.primary, s.self.primaryID = true, ""
	s.self.epoch = epoch
	s.promotedAt = s.w.now
	s.currentEpoch = max(s.currentEpoch, epoch)
	if old != nil {
		s.self.slots, old.slots, old.unclaimed = s.self.slots.Union(old.slots), slots.Set{}, slots.Set{}
	}
	s.before, s.branch = s.history, s.offset
	s.history = s.w.rand.Uint64()
	s.repl = replication{session: s.repl.session + 1, downSince: never, unheard: never}
	s.manual, s.electing = nil, false
	s.abortImports("A failover occurred during slot import")
	s.settle()
	s.broadcast()
	s.w.stats.count("promotion")
}

// failover is CLUSTER FAILOVER, sent to a replica.
func (s *server) failover(mode plan.FailoverMode) error {
	if !s.isReplica() {
		return errors.New("ERR You should send CLUSTER FAILOVER to a replica")
	}
	p := s.row(s.self.primaryID)
	if p == nil {
		return errors.New("ERR I'm a replica but my master is unknown to me")
	}
	switch mode {
	case plan.Takeover:
		s.promote(s.nextEpoch())
		return nil
	case plan.Force:
		s.manual = &manualFailover{until: s.w.now + manualTimeout}
		s.campaign(p, s.manual)
		return nil
	}
	if p.fail || !p.link {
		return errors.New("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE")
	}
	s.manual = &manualFailover{until: s.w.now + manualTimeout}
	s.ask(p, s.manual)
	return nil
}

// nextEpoch is an epoch above all that the server has seen, taken without asking.
func (s *server) nextEpoch() uint64 {
	top := s.currentEpoch
	for _, r := range s.rows {
		top = max(top, r.epoch)
	}
	s.currentEpoch = top + 1
	return s.currentEpoch
}

// ask makes the primary pause its writes, waits for what is still on its way, and
// then asks for votes.
func (s *server) ask(p *row, mf *manualFailover) {
	s.w.after(s.w.between(time.Millisecond, 5*time.Millisecond), func() {
		if s.manual != mf || !s.running {
			return
		}
		peer := p.peer
		if s.w.talks(s, peer) && !peer.isReplica() && peer.row(s.id) != nil {
			peer.pausedUntil = s.w.now + 2*manualTimeout
			s.caughtUp(p, mf)
			return
		}
		s.expire(mf)
	})
}

// caughtUp goes on once the replica has all that the paused primary wrote.
func (s *server) caughtUp(p *row, mf *manualFailover) {
	switch {
	case s.manual != mf || !s.running:
	case s.w.now > mf.until:
		s.expire(mf)
	case !s.hung && s.repl.up && s.repl.from == p.peer && !s.repl.gap && s.offset == p.peer.offset && s.w.talks(s, p.peer):
		s.campaign(p, mf)
	default:
		s.w.after(10*time.Millisecond, func() { s.caughtUp(p, mf) })
	}
}

// campaign asks for votes that need no failure.
func (s *server) campaign(p *row, mf *manualFailover) {
	s.elect(p, true, func(won bool) {
		if !won && s.manual == mf {
			s.expire(mf)
		}
	})
}

// expire ends a manual failover that came to nothing, at its time-out.
func (s *server) expire(mf *manualFailover) {
	s.w.after(mf.until-s.w.now, func() {
		if s.manual != mf {
			return
		}
		s.w.say("the failover of %s timed out", s)
		s.w.stats.count("manual failover timed out")
		s.manual = nil
		if p := s.row(s.self.primaryID); p != nil && !p.peer.stopping {
			p.peer.pausedUntil = 0
		}
	})
}

// sigterm ends a server as shutdown-on-sigterm failover does: a primary waits for
// its replicas, lets the best take over, and exits.
func (s *server) sigterm() {
	if !s.running || s.stopping {
		return
	}
	s.stopping = true
	s.w.say("server %s gets SIGTERM", s)
	if s.hung {
		return
	}
	if s.isReplica() || s.self.slots.Empty() || len(s.replicas()) == 0 {
		s.w.after(100*time.Millisecond, func() { s.stop() })
		return
	}
	s.pausedUntil = s.w.now + 20*time.Second
	s.w.after(s.w.between(50*time.Millisecond, time.Second), func() { s.handOver(s.w.now + 10*time.Second) })
}

// handOver waits until a replica has everything, as long as the shutdown may last.
func (s *server) handOver(until time.Duration) {
	if !s.running || s.hung {
		return
	}
	var ready *server
	for _, r := range s.replicas() {
		if !r.hung && !r.repl.gap && r.offset == s.offset && s.w.connected(s, r) {
			ready = r
		}
	}
	switch {
	case s.isReplica():
		s.stop()
	case ready != nil:
		s.w.say("server %s lets %s take over and exits", s, ready)
		if p := ready.row(s.id); p != nil && ready.isReplica() {
			ready.manual = &manualFailover{until: s.w.now + manualTimeout}
			ready.campaign(p, ready.manual)
		}
		s.stop()
	case s.w.now >= until:
		s.stop()
	default:
		s.w.after(50*time.Millisecond, func() { s.handOver(until) })
	}
}

// stop is the end of a process by its own will.
func (s *server) stop() {
	if !s.running {
		return
	}
	s.w.say("server %s exits", s)
	if !s.retired {
		s.w.truth.gone(s)
	}
	s.end(0, "SIGTERM")
}
