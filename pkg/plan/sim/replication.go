package sim

import (
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// replication is a replica's link to its primary.
type replication struct {
	from *server
	// session changes with every new link, so that what an old one still carries
	// is dropped.
	session int
	up      bool
	syncing bool
	// downSince is when the link was last up, never if it never was.
	downSince time.Duration
	// gap is whether something of the stream waits on the way.
	gap bool
	// unheard is since when the other end of a link that is up does not answer.
	unheard time.Duration
}

// setPrimary makes the server a replica of a member, or a replica of another one.
func (s *server) setPrimary(r *row) {
	s.self.primary, s.self.primaryID = false, r.id
	s.self.slots = slots.Set{}
	if !r.peer.continues(s) {
		s.whole = false
	}
	s.repl = replication{session: s.repl.session + 1, downSince: never, unheard: never}
	s.manual, s.electing = nil, false
	s.pausedUntil = 0
	s.abortExports("the node has become a replica")
	s.abortImports("A failover occurred during slot import")
	s.changed()
	s.broadcast()
	s.settle()
	s.w.after(s.w.between(5*time.Millisecond, 100*time.Millisecond), s.follow)
}

// dropLink is the end of a replication link.
func (s *server) dropLink() {
	if s.repl.up {
		s.repl.downSince = s.w.now
	}
	s.repl.up, s.repl.syncing, s.repl.from = false, false, nil
	s.repl.session++
}

// follow connects a replica to its primary, and notices a dead link.
func (s *server) follow() {
	if !s.running || s.hung || !s.isReplica() {
		return
	}
	if s.repl.up || s.repl.syncing {
		s.checkLink()
		return
	}
	r := s.row(s.self.primaryID)
	if r == nil || !s.w.talks(s, r.peer) {
		return
	}
	p := r.peer
	s.repl.session++
	s.repl.from = p
	session := s.repl.session
	if p.continues(s) {
		s.w.after(s.w.between(5*time.Millisecond, 60*time.Millisecond), func() { s.joinStream(p, session) })
		return
	}
	s.repl.syncing = true
	s.w.say("replica %s starts a full sync from %s", s, p)
	s.w.after(s.w.between(s.w.quirks.syncTime/2, s.w.quirks.syncTime*2), func() { s.synced(p, session) })
}

// checkLink notices after the replication timeout that the other end is silent.
func (s *server) checkLink() {
	if s.w.talks(s, s.repl.from) {
		s.repl.unheard = never
		if s.repl.gap && s.repl.up {
			s.stream(s.repl.from) // what TCP held back arrives
		}
		return
	}
	if s.repl.unheard == never {
		s.repl.unheard = s.w.now
	}
	if s.w.now-s.repl.unheard > replTimeout {
		s.w.say("replica %s gives up its link to %s", s, s.repl.from)
		s.dropLink()
	}
}

// continues reports whether a replica can go on with this server's stream without
// a full copy.
func (s *server) continues(replica *server) bool {
	if replica.history == s.history {
		return replica.offset <= s.offset
	}
	return replica.history == s.before && replica.offset <= s.branch
}

// joinStream is the end of a partial sync: the replica catches up and streams.
func (s *server) joinStream(p *server, session int) {
	if !s.running || s.repl.session != session || !s.isReplica() {
		return
	}
	if s.hung || !s.w.talks(s, p) {
		s.dropLink()
		return
	}
	s.stream(p)
}

// synced is the end of a full sync.
func (s *server) synced(p *server, session int) {
	if !s.running || s.repl.session != session || !s.isReplica() {
		return
	}
	if s.hung || !s.w.talks(s, p) {
		s.w.say("the full sync of %s from %s breaks", s, p)
		s.w.stats.count("full sync broken")
		s.repl.syncing = false
		s.dropLink()
		return
	}
	s.w.say("replica %s has a full copy of %s", s, p)
	s.stream(p)
}

// stream makes the replica equal to its primary and connects it.
func (s *server) stream(p *server) {
	s.data, s.offset, s.whole = p.data.clone(), p.offset, p.whole
	s.history, s.before, s.branch = p.history, p.before, p.branch
	s.repl.gap = false
	s.repl.up, s.repl.syncing, s.repl.from, s.repl.unheard = true, false, p, never
	s.repl.downSince = s.w.now
}

// replicas returns the servers that stream from this one.
func (s *server) replicas() []*server {
	var out []*server
	for _, other := range s.w.servers {
		if other.running && other.isReplica() && other.repl.from == s && other.repl.up {
			out = append(out, other)
		}
	}
	return out
}

// tellReplicas sends a change down the stream. It arrives in order, for each
// replica after its lag, unless the link breaks before.
func (s *server) tellReplicas(apply func(replica *server)) {
	s.offset += 50
	s.send(apply, s.offset)
}

// send hands a part of the stream on to the replicas.
func (s *server) send(apply func(replica *server), offset int64) {
	for _, replica := range s.replicas() {
		session := replica.repl.session
		s.w.after(s.w.quirks.lag, func() {
			switch {
			case !replica.running || replica.repl.session != session || !replica.repl.up:
			case replica.hung || replica.repl.gap || !s.w.connected(s, replica):
				replica.repl.gap = true
			default:
				apply(replica)
				replica.offset = max(replica.offset, offset)
				replica.send(apply, offset)
			}
		})
	}
}
