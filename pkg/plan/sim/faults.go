package sim

import (
	"slices"
	"time"
)

// Times of Kubernetes: how long until a host that is silent is called not ready,
// and until its pods are evicted.
const (
	notReadyAfter = 40 * time.Second
	evictedAfter  = 5 * time.Minute
)

// healing is how long a server that was out of reach may take to learn what
// happened meanwhile; what it acknowledges until then may be lost.
const healing = 15 * time.Second

func killAContainer(w *world, done func()) bool {
	p := w.onePod()
	if p == nil {
		return false
	}
	w.truth.fault()
	p.process.kill("kill -9")
	w.after(time.Second, done)
	return true
}

func forceDeleteAPod(w *world, done func()) bool {
	p := w.onePod()
	if p == nil {
		return false
	}
	w.truth.fault()
	w.say("pod %s is deleted by force", p.name)
	w.truth.violence(p.process)
	w.forceDelete(p)
	w.after(3*time.Second, done)
	return true
}

func deleteANodeObject(w *world, done func()) bool {
	p := w.onePod()
	if p == nil || w.api.nodes[p.name] == nil {
		return false
	}
	w.truth.fault()
	w.say("node %s is deleted by somebody", p.name)
	w.truth.violence(p.process)
	p.process.writtenOff = true
	w.deleteNode(p.name, false)
	w.after(3*time.Second, done)
	return true
}

// killAShard takes all copies of the data of one shard at once.
func killAShard(w *world, done func()) bool {
	p := w.onePod()
	if p == nil {
		return false
	}
	w.truth.fault()
	shard := w.position(p.process).Shard
	for _, other := range w.runningPods() {
		if w.position(other.process).Shard == shard {
			other.process.kill("its shard dies")
		}
	}
	w.after(time.Second, done)
	return true
}

func killEverything(w *world, done func()) bool {
	w.truth.fault()
	for _, p := range w.runningPods() {
		p.process.kill("everything dies")
	}
	w.after(time.Second, done)
	return true
}

// hangAServer stops a server as SIGSTOP does. Where the kubelet asks the server
// itself, and not only its port, it kills it after a while.
func hangAServer(w *world, done func()) bool {
	p := w.onePod()
	if p == nil || p.process.hung {
		return false
	}
	s := p.process
	w.truth.fault()
	w.truth.violence(s)
	s.hung, s.changedReach = true, w.now
	w.say("server %s hangs", s)
	if w.chance(0.4) { // for good
		w.after(w.between(20*time.Second, 40*time.Second), func() {
			if s.hung && !w.quirks.tcpProbe {
				s.kill("the liveness probe failed")
			}
			done()
		})
		return true
	}
	w.after(w.between(time.Second, 40*time.Second), func() {
		done()
		if !s.running {
			return
		}
		s.hung = false
		w.say("server %s goes on", s)
		for _, r := range s.rows { // what others sent meanwhile is read first
			if r != s.self {
				s.ping(r, w.between(time.Millisecond, 10*time.Millisecond))
			}
		}
		w.recovers(s)
	})
	return true
}

// recovers lets a server's word count again, once it had time to learn what
// happened meanwhile.
func (w *world) recovers(s *server) {
	s.changedReach = w.now
	w.after(healing, func() {
		if !s.hung && !s.host.isolated() && w.net.far == nil {
			s.suspect = false
		}
	})
}

// oneHost picks a host that works and has pods of the cluster.
func (w *world) oneHost() *host {
	var out []*host
	for _, h := range w.hosts {
		if h.ready && h.registered && !h.isolated() && len(w.on(h)) > 0 {
			out = append(out, h)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out[w.rand.IntN(len(out))]
}

// on returns the servers that run on a host.
func (w *world) on(h *host) []*server {
	var out []*server
	for _, s := range w.servers {
		if s.running && s.host == h {
			out = append(out, s)
		}
	}
	return out
}

// isolate turns a host off or cuts it off.
func (w *world) isolate(h *host, off bool) {
	w.truth.fault()
	w.say("host %s is gone, power off=%v", h.name, off)
	servers := w.on(h)
	if !off && w.mostVoters(servers) {
		for _, s := range w.servers { // those outside are the ones that lose
			if s.running {
				w.truth.violence(s)
			}
		}
	}
	h.off, h.cut = off, !off
	h.outages++
	for _, s := range servers {
		w.truth.violence(s)
		s.changedReach = w.now
	}
	if off {
		for _, s := range servers {
			s.end(255, "the host lost power")
		}
	}
	outage := h.outages
	w.after(notReadyAfter, func() {
		if h.isolated() && h.outages == outage {
			h.ready = false
		}
	})
	w.after(notReadyAfter+evictedAfter, func() {
		if !h.isolated() || h.outages != outage {
			return
		}
		for _, p := range w.api.sortedPods() {
			if p.host == h {
				w.deletePod(p.name, "its host is not ready")
			}
		}
	})
}

// mostVoters reports whether half or more of the voting primaries are among some
// servers.
func (w *world) mostVoters(some []*server) bool {
	all, among := 0, 0
	for _, s := range w.servers {
		if s.running && s.self.votes() {
			all++
			if slices.Contains(some, s) {
				among++
			}
		}
	}
	return 2*among >= all
}

// restore brings a host back.
func (w *world) restore(h *host) {
	w.say("host %s is back", h.name)
	h.off, h.cut = false, false
	for _, s := range w.servers {
		if s.running && s.suspect {
			w.recovers(s)
		}
	}
	w.after(w.between(time.Second, 10*time.Second), func() {
		if !h.isolated() {
			if !h.ready {
				h.readySince = w.now
			}
			h.ready, h.registered = true, true
		}
	})
}

func stopAHost(w *world, done func()) bool   { return w.outage(true, done) }
func cutOffAHost(w *world, done func()) bool { return w.outage(false, done) }

// outage takes a host away for a while: shorter than anybody notices, or until
// its pods are evicted.
func (w *world) outage(off bool, done func()) bool {
	h := w.oneHost()
	if h == nil {
		return false
	}
	w.isolate(h, off)
	length := w.between(2*time.Second, 60*time.Second)
	if w.chance(0.3) {
		length = w.between(time.Minute, notReadyAfter+evictedAfter+time.Minute)
	}
	w.after(length, func() {
		w.restore(h)
		done()
	})
	return true
}

// loseAHost takes a host away for good: somebody deletes its Node object, and
// Kubernetes removes its pods. At times it comes back after all.
func loseAHost(w *world, done func()) bool {
	h := w.oneHost()
	if h == nil {
		return false
	}
	w.isolate(h, w.chance(0.6))
	w.after(w.between(5*time.Second, 60*time.Second), func() {
		w.say("the Node object of %s is deleted", h.name)
		h.registered, h.ready = false, false
		for _, s := range w.on(h) {
			s.writtenOff = true // somebody says that it runs no more
		}
		for _, p := range w.api.sortedPods() {
			if p.host == h {
				w.after(w.between(time.Second, 40*time.Second), func() { w.forceDelete(p) })
			}
		}
		if w.chance(0.5) {
			w.after(w.between(45*time.Second, 3*time.Minute), func() {
				w.restore(h)
				done()
			})
			return
		}
		w.after(45*time.Second, done)
	})
	return true
}

// partTheNetwork splits the servers into two sides that don't hear each other.
func partTheNetwork(w *world, done func()) bool {
	pods := w.runningPods()
	if w.net.far != nil || len(pods) < 2 {
		return false
	}
	w.truth.fault()
	far := map[string]bool{}
	for _, p := range pods {
		if w.chance(0.4) {
			far[p.name] = true
		}
	}
	w.net.far, w.net.managerFar, w.net.clientsFar = far, w.chance(0.3), w.chance(0.3)
	w.say("the network is parted: %d of %d pods are on the far side, manager=%v clients=%v", len(far), len(pods), w.net.managerFar, w.net.clientsFar)
	w.reachChanged()
	for _, p := range pods {
		w.truth.violence(p.process)
	}
	w.after(w.between(2*time.Second, 90*time.Second), func() {
		w.say("the network is whole again")
		w.net.far, w.net.managerFar, w.net.clientsFar = nil, false, false
		for _, s := range w.servers {
			if s.running {
				w.recovers(s)
			}
		}
		done()
	})
	return true
}

// reachChanged notes for all servers that who reaches them changed.
func (w *world) reachChanged() {
	for _, s := range w.servers {
		s.changedReach = w.now
	}
}
