package sim

import (
	"fmt"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

const (
	// preStop is how long a pod keeps running after it was told to stop.
	preStop = 3 * time.Second
	// grace is when a pod that still runs is killed.
	grace = 30 * time.Second
)

// host is a machine that runs pods.
type host struct {
	name string
	// off: nothing runs. cut: everything runs, nothing gets in or out. In both
	// cases its kubelet reports nothing.
	off, cut bool
	// ready is the Ready condition of the Node object, registered whether there is
	// one.
	ready, registered bool
	outages           int
	// readySince is when the condition last became true.
	readySince time.Duration
	// full hosts take no new pods.
	full bool
}

// isolated reports whether no packet passes.
func (h *host) isolated() bool { return h.off || h.cut }

// createPod makes the pod of a node.
func (w *world) createPod(n *nodeObject) *podObject {
	w.api.serials++
	p := &podObject{name: n.name, serial: w.api.serials, owner: n.uid, phase: plan.PodPending, deleted: never, image: n.image}
	w.api.pods[n.name] = p
	w.changedPod(p.name)
	w.after(w.between(20*time.Millisecond, 400*time.Millisecond), func() { w.schedule(p) })
	return p
}

// current reports whether a pod object is still there.
func (w *world) current(p *podObject) bool { return w.api.pods[p.name] == p }

// schedule finds a host for a pod, now or later.
func (w *world) schedule(p *podObject) {
	if !w.current(p) || p.deleted != never {
		return
	}
	var fit []*host
	for _, h := range w.hosts {
		if h.ready && h.registered && !h.full {
			fit = append(fit, h)
		}
	}
	if len(fit) == 0 {
		if p.detail == "" {
			p.detail = "Unschedulable: no host has room"
			w.stats.count("pod unschedulable")
			w.changedPod(p.name)
		}
		w.after(w.between(time.Second, 3*time.Second), func() { w.schedule(p) })
		return
	}
	p.host = fit[w.leastUsed(p.name, fit)]
	p.detail = ""
	w.changedPod(p.name)
	w.after(w.between(200*time.Millisecond, w.quirks.startTime), func() { w.start(p) })
}

// leastUsed returns the host with the fewest pods of the cluster, by chance any.
func (w *world) leastUsed(_ string, fit []*host) int {
	if w.chance(0.2) {
		return w.rand.IntN(len(fit))
	}
	best, least := 0, 1<<30
	for _, i := range w.shuffled(len(fit)) {
		used := 0
		for _, p := range w.api.pods {
			if p.host == fit[i] && p.phase != plan.PodTerminated {
				used++
			}
		}
		if used < least {
			best, least = i, used
		}
	}
	return best
}

// start runs the container of a pod, if its image is any good.
func (w *world) start(p *podObject) {
	switch {
	case !w.current(p) || p.deleted != never || p.process != nil || p.phase != plan.PodPending:
		return
	case p.host.isolated():
		w.after(time.Second, func() { w.start(p) })
		return
	case p.image.bad:
		p.detail = "ImagePullBackOff: no such image"
		w.stats.count("bad image")
		w.changedPod(p.name)
		return
	}
	ip := w.address()
	p.process = w.newServer(p.name, ip, p.host)
	w.say("pod %s: server %s starts on %s at %s", p.name, short(p.process.id), p.host.name, ip)
	w.report(p, func() { p.phase, p.ip = plan.PodRunning, ip })
	if p.image.crashing {
		w.after(w.between(10*time.Millisecond, 300*time.Millisecond), func() { p.process.kill("it can't read its configuration") })
	}
}

// address gives out an IP: a new one, or at times that of a process that ended.
func (w *world) address() string {
	if w.chance(0.15) && len(w.servers) > 0 {
		old := w.servers[w.rand.IntN(len(w.servers))]
		if !old.running && w.at(old.ip) == nil {
			w.stats.count("address used again")
			return old.ip
		}
	}
	w.api.ips++
	return fmt.Sprintf("10.0.%d.%d", w.api.ips/250, 1+w.api.ips%250)
}

// at returns the server that runs at an IP, nil if there is none.
func (w *world) at(ip string) *server {
	for _, s := range w.servers {
		if s.running && s.ip == ip {
			return s
		}
	}
	return nil
}

// report lets the kubelet write a pod's status a moment later, if it can.
func (w *world) report(p *podObject, change func()) {
	w.after(w.between(5*time.Millisecond, 500*time.Millisecond), func() {
		if !w.current(p) {
			return
		}
		if p.host != nil && p.host.isolated() {
			w.after(time.Second, func() { w.report(p, change) })
			return
		}
		if p.phase == plan.PodTerminated {
			return
		}
		change()
		w.changedPod(p.name)
	})
}

// exited reports the end of a pod's container.
func (w *world) exited(p *podObject, detail string) {
	w.report(p, func() {
		p.phase, p.detail = plan.PodTerminated, detail
		w.say("pod %s is terminated: %s", p.name, detail)
	})
	if p.deleted != never {
		w.removeWhenStopped(p)
	}
}

// deletePod tells a pod to stop, as kubectl delete and evictions do.
func (w *world) deletePod(name, why string) {
	p := w.api.pods[name]
	if p == nil || p.deleted != never {
		return
	}
	p.deleted = w.now
	w.say("pod %s is told to stop: %s", name, why)
	w.changedPod(name)
	w.after(w.between(5*time.Millisecond, 300*time.Millisecond), func() { w.stopPod(p) })
}

// stopPod is the kubelet's part of a deletion.
func (w *world) stopPod(p *podObject) {
	switch {
	case !w.current(p):
	case p.host == nil:
		w.removePod(p)
	case p.host.isolated():
		w.after(time.Second, func() { w.stopPod(p) })
	case p.process == nil || !p.process.running:
		w.removeWhenStopped(p)
	default:
		w.onHost(p, preStop, p.process.sigterm)
		w.onHost(p, grace, func() {
			if p.process.running {
				w.say("pod %s does not stop and is killed", p.name)
				p.process.kill("killed at the end of its grace period")
			}
		})
	}
}

// onHost lets the kubelet do something to a pod later, once its host works.
func (w *world) onHost(p *podObject, d time.Duration, f func()) {
	w.after(d, func() {
		if p.host.isolated() {
			w.onHost(p, time.Second, f)
			return
		}
		f()
	})
}

// removeWhenStopped removes a deleted pod whose container has ended.
func (w *world) removeWhenStopped(p *podObject) {
	w.after(w.between(50*time.Millisecond, time.Second), func() {
		switch {
		case !w.current(p):
		case p.host.isolated():
			w.removeWhenStopped(p)
		default:
			w.removePod(p)
		}
	})
}

// removePod takes a pod object away.
func (w *world) removePod(p *podObject) {
	if !w.current(p) {
		return
	}
	delete(w.api.pods, p.name)
	w.say("pod %s is gone", p.name)
	w.changedPod(p.name)
}

// forceDelete takes the object away at once; the kubelet ends the container when
// it gets to it.
func (w *world) forceDelete(p *podObject) {
	w.removePod(p)
	w.cleanUp(p)
}

// cleanUp ends the container of a pod that has no object any more.
func (w *world) cleanUp(p *podObject) {
	if p.process == nil || !p.process.running {
		return
	}
	most := 2 * time.Second
	if w.chance(0.3) {
		most = 25 * time.Second // a kubelet that has much to do
	}
	w.after(w.between(10*time.Millisecond, most), func() {
		switch {
		case !p.process.running:
		case p.host.isolated():
			w.after(time.Second, func() { w.cleanUp(p) })
		default:
			p.process.kill("its pod was deleted by force")
		}
	})
}
