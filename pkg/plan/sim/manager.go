package sim

import (
	"fmt"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// objectKind tells the two watches apart: they are not in step with each other.
type objectKind int

const (
	objectNode objectKind = iota
	objectPod
)

// manager is the program under test: its loop as pkg/controller/cluster has it,
// with caches that follow the API server late, and a memory that is lost when it
// dies.
type manager struct {
	w     *world
	alive bool
	// life changes with every start, so that what an earlier one had begun stops.
	life int

	nodes map[string]nodeObject
	pods  map[string]podObject
	// arrival is when the last event of each watch arrives.
	arrival [2]time.Duration

	busy, wanted bool
	wakeup       int // the last one that was planned counts
	since        time.Duration
	what         string

	memo        memo
	holds       holds
	stalls      plan.Stalls
	failovers   map[int32]time.Duration
	silentSince map[string]time.Duration
	goneSince   map[string]time.Duration

	// last is the last decision, lastAt when it was made.
	last      plan.Decision
	lastState *plan.State
	lastAt    time.Duration
	// slow watches are behind by seconds.
	slow bool
}

func newManager(w *world) *manager { return &manager{w: w} }

// start is a new process: it lists everything and remembers nothing.
func (m *manager) start() {
	if m.alive {
		return
	}
	m.alive = true
	m.life++
	m.nodes, m.pods = map[string]nodeObject{}, map[string]podObject{}
	for name, n := range m.w.api.nodes {
		m.nodes[name] = *n
	}
	for name, p := range m.w.api.pods {
		m.pods[name] = *p
	}
	m.arrival = [2]time.Duration{}
	m.busy, m.wanted = false, false
	m.since, m.what, m.memo = m.w.now, "", memo{}
	m.holds, m.stalls, m.failovers = holds{}, plan.Stalls{}, map[int32]time.Duration{}
	m.silentSince, m.goneSince = map[string]time.Duration{}, map[string]time.Duration{}
	m.w.say("manager starts")
	for _, n := range m.w.api.sortedNodes() {
		m.reconcileNode(n.name)
	}
	m.wake(time.Millisecond)
}

// crash ends the process between two of its steps.
func (m *manager) crash(why string) {
	if !m.alive {
		return
	}
	m.alive = false
	m.life++
	m.w.say("manager dies: %s", why)
	m.w.stats.count("manager crash")
	m.w.after(m.w.between(200*time.Millisecond, 12*time.Second), m.start)
}

// later plans a step of this life of the manager.
func (m *manager) later(d time.Duration, f func()) {
	life := m.life
	m.w.after(d, func() {
		if m.life == life {
			f()
		}
	})
}

func (m *manager) latency() time.Duration {
	if m.w.chance(0.02) {
		return m.w.between(50*time.Millisecond, time.Second)
	}
	return m.w.between(200*time.Microsecond, 8*time.Millisecond)
}

// watch brings a change of an object into the cache, in order, some time later.
func (m *manager) watch(kind objectKind, name string) {
	if !m.alive {
		return
	}
	lag := m.w.between(time.Millisecond, m.w.quirks.watchLag)
	if m.slow {
		lag = m.w.between(time.Second, 8*time.Second)
	}
	at := max(m.arrival[kind], m.w.now+lag)
	m.arrival[kind] = at
	node, pod := m.w.api.nodes[name], m.w.api.pods[name]
	var nodeCopy nodeObject
	var podCopy podObject
	if node != nil {
		nodeCopy = *node
	}
	if pod != nil {
		podCopy = *pod
	}
	m.later(at-m.w.now, func() {
		switch {
		case kind == objectNode && node != nil:
			m.nodes[name] = nodeCopy
		case kind == objectNode:
			delete(m.nodes, name)
		case pod != nil:
			m.pods[name] = podCopy
		default:
			delete(m.pods, name)
		}
		m.reconcileNode(name)
		m.wake(30 * time.Millisecond)
	})
}

// wake plans the next pass; an earlier one that is planned already is kept.
func (m *manager) wake(d time.Duration) {
	if m.busy {
		m.wanted = true
		return
	}
	m.wakeup++
	mine := m.wakeup
	m.later(d, func() {
		if m.wakeup == mine && !m.busy {
			m.pass()
		}
	})
}

// pass observes, decides, acts once and writes down what it saw.
func (m *manager) pass() {
	m.busy, m.wanted = true, false
	m.w.stats.passes++
	m.observe(false, func(o *observation) {
		found := m.fingerprint(o)
		if m.memo.idle && m.memo.found == found && m.w.opt.Hooks.Next == nil {
			m.w.stats.spared++
			m.lastAt = m.w.now
			m.rest(m.memo.decision, false, nil)
			return
		}
		d := m.next(o)
		m.memo.found, m.memo.decision, m.memo.idle = found, d, len(d.Actions) == 0
		if m.w.opt.Hooks.Cached || !d.NeedsLiveView() {
			m.act(o, d)
			return
		}
		m.observe(true, func(fresh *observation) { m.act(fresh, m.next(fresh)) })
	})
}

func (m *manager) next(o *observation) plan.Decision {
	state := m.state(o)
	m.lastState = &state
	next := plan.Next
	if f := m.w.opt.Hooks.Next; f != nil {
		next = f
	}
	d := next(state)
	if d.Complete && m.w.wish.handover != 0 {
		return m.serveRequest(o, state)
	}
	return d
}

// serveRequest answers the user's request for a failover, once.
func (m *manager) serveRequest(o *observation, state plan.State) plan.Decision {
	shard := m.w.wish.handover - 1
	m.w.wish.handover = 0
	a, err := plan.Handover(state, shard, "")
	if err != nil {
		m.w.say("manager refuses a failover: %v", err)
		m.w.stats.count("request refused")
		return plan.Next(state)
	}
	m.w.stats.count("request served")
	o.requested = true
	return plan.Decision{Actions: []plan.Action{a}}
}

// act carries out the actions of a decision, all at once, each at its own pace.
func (m *manager) act(o *observation, d plan.Decision) {
	status := &m.w.api.status
	if o.creating && (status.target == nil || *status.target != o.target) {
		m.finish(o, d, true, nil) // the snapshot is written down first
		return
	}
	m.w.truth.decided(o, d)
	m.tell(d)
	waiting := len(d.Actions)
	if waiting == 0 {
		m.finish(o, d, false, nil)
		return
	}
	acted := false
	var failed error
	for _, a := range d.Actions {
		if f := m.w.opt.Hooks.Before; f != nil {
			a = f(a)
		}
		m.later(m.latency(), func() {
			if m.w.chance(m.w.quirks.crash / float64(len(d.Actions))) {
				m.crash("before " + string(a.Kind) + " " + a.Node)
				return
			}
			fresh, err := m.execute(o, a)
			m.later(m.latency(), func() {
				acted = acted || fresh
				if err != nil {
					failed = fmt.Errorf("%s %s: %w", a.Kind, a.Node, err)
				}
				waiting--
				if waiting == 0 {
					m.finish(o, d, acted, failed)
				}
			})
		})
	}
}

// tell writes a decision into the trace when it differs from the last one.
func (m *manager) tell(d plan.Decision) {
	if m.w.tracing() {
		for _, a := range d.Actions {
			m.w.say("manager: %s %s %s %s(%s)", a.Kind, a.Node, short(a.TargetID), a.Mode, a.Reason)
		}
		if len(d.Actions) == 0 && d.Waiting != m.last.Waiting {
			m.w.say("manager waits: %s", d.Waiting)
		}
		if d.Complete && !m.last.Complete {
			m.w.say("manager: complete")
		}
	}
	m.last, m.lastAt = d, m.w.now
}

// finish writes status and gates.
func (m *manager) finish(o *observation, d plan.Decision, acted bool, failed error) {
	changed := m.writeStatus(o, d, failed)
	if found := m.fingerprint(o); found != m.memo.written {
		m.memo.written = found
		m.markInSync(o)
	}
	if owners := m.owners(o); owners != m.memo.owners {
		m.memo.owners = owners
		m.w.api.status.recorded = plan.Records(m.state(o))
	}
	m.rest(d, changed || acted, failed)
}

// rest plans the next look.
func (m *manager) rest(d plan.Decision, acted bool, failed error) {
	m.busy = false
	what := d.Waiting
	if len(d.Actions) > 0 {
		what = d.Actions[0].Reason
	}
	if failed != nil {
		what = "failed: " + failed.Error()
		m.w.say("manager: %s", what)
	}
	if what != m.what {
		m.what, m.since = what, m.w.now
	}
	next := min(max((m.w.now-m.since)/10, fastest), slowest)
	switch {
	case failed == nil && acted:
		next = fastest
	case what == "":
		next = slowest
	}
	if m.wanted {
		next = min(next, 10*time.Millisecond)
	}
	m.w.judge(d)
	m.wake(next)
}

// writeStatus is the part of the cluster's status that is read again.
func (m *manager) writeStatus(o *observation, d plan.Decision, failed error) bool {
	s := &m.w.api.status
	before, had := s.active, s.target
	if d.Complete && failed == nil {
		s.active, s.target = true, nil
	}
	if !s.active {
		target := o.target
		s.target = &target
	}
	return before != s.active || !same(had, s.target)
}

func same(a, b *v1alpha1.TargetTopology) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
