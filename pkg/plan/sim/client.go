package sim

import (
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// client writes one new key after the other, follows redirects as cluster-aware
// clients do, and remembers what was acknowledged.
type client struct {
	w *world
	// route is the server that last took a write, by slot.
	route [slots.Count / 64]*server
	// stopped clients write no more.
	stopped bool
}

// writeEvery is the time between two writes.
const writeEvery = 150 * time.Millisecond

func (c *client) start() {
	c.w.after(c.w.between(writeEvery/2, writeEvery*3/2), func() {
		if c.stopped {
			return
		}
		if c.w.api.status.active { // nobody was promised anything before
			c.write(c.w.rand.IntN(slots.Count))
		}
		c.start()
	})
}

// write tries one key until it is acknowledged, refused or has been sent around
// too often. What is not acknowledged is not counted.
func (c *client) write(slot int) {
	s := c.route[slot/64]
	if s == nil || c.w.chance(0.05) {
		s = c.anybody()
	}
	for range 5 {
		if s == nil || !s.running || s.hung || !c.w.clientReaches(s) {
			c.route[slot/64] = c.anybody()
			c.w.stats.failedWrites++
			return
		}
		next, acknowledged := s.set(slot)
		if acknowledged {
			c.route[slot/64] = s
			return
		}
		if next == nil {
			break
		}
		s = next
	}
	c.route[slot/64] = nil
	c.w.stats.failedWrites++
}

// anybody returns some server that runs.
func (c *client) anybody() *server {
	var running []*server
	for _, s := range c.w.servers {
		if s.running {
			running = append(running, s)
		}
	}
	if len(running) == 0 {
		return nil
	}
	return running[c.w.rand.IntN(len(running))]
}

// set is a write of one key. The server acknowledges it, or names the owner of the
// slot, or neither.
func (s *server) set(slot int) (*server, bool) {
	if s.isReplica() || !s.self.slots.Contains(slot) {
		if owner := s.owner(slot); owner != nil && s.ok {
			return owner.peer, false
		}
		return nil, false
	}
	if !s.ok || s.pausedUntil > s.w.now || s.stopping {
		return nil, false
	}
	id := s.w.truth.acknowledged(s, slot)
	s.data.add(id)
	s.tellReplicas(func(replica *server) { replica.data.add(id) })
	return nil, true
}
