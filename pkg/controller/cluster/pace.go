package cluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// Bounds of how often a cluster is looked at when no watch event comes: what only
// the servers know (gossip, a sync that ends) has to be asked for. While things
// change that is often; the longer nothing does, the rarer it gets.
const (
	fastest = 50 * time.Millisecond
	slowest = 10 * time.Second
	// soon is how long most of what is waited for takes to come.
	soon = time.Second
)

// pace remembers since when each cluster has only been waited for.
type pace struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

func newPace() *pace { return &pace{since: map[types.NamespacedName]time.Time{}} }

// next returns when to look at a cluster again. Acted says that something was done
// in this pass, waiting that something is still to come. That the reason for
// waiting changes does not count as something done: messages of Kubernetes change
// all the time while nothing gets better.
func (p *pace) next(key types.NamespacedName, acted, waiting bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	began, ok := p.since[key]
	switch {
	case acted:
		p.since[key] = now
		return fastest
	case !waiting:
		delete(p.since, key)
		return slowest
	case !ok:
		p.since[key] = now
		return fastest
	}
	return min(max((now.Sub(began)-soon)/10, fastest), slowest)
}

func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, key)
}

// Bounds of how fast a node that dies before it joins is replaced.
const (
	firstHold = 10 * time.Second
	longest   = 5 * time.Minute
)

// holds counts, for each position, the nodes that died before they joined. A
// restart of the manager starts to count anew, which costs one early attempt.
type holds struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]map[plan.Position]*hold
}

type hold struct {
	dead  map[string]bool
	until time.Time
}

func newHolds() *holds {
	return &holds{byKey: map[types.NamespacedName]map[plan.Position]*hold{}}
}

// died notes a node that died before it joined, once.
func (h *holds) died(key types.NamespacedName, p plan.Position, node string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byKey[key] == nil {
		h.byKey[key] = map[plan.Position]*hold{}
	}
	at := h.byKey[key][p]
	if at == nil {
		at = &hold{dead: map[string]bool{}}
		h.byKey[key][p] = at
	}
	if at.dead[node] {
		return
	}
	at.dead[node] = true
	wait := longest
	if n := len(at.dead) - 1; n < 5 {
		wait = min(firstHold<<n, longest)
	}
	at.until = now.Add(wait)
}

// joined forgets the deaths of a position.
func (h *holds) joined(key types.NamespacedName, p plan.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byKey[key], p)
}

// remaining returns how long a position has to wait for its next node.
func (h *holds) remaining(key types.NamespacedName, p plan.Position, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.byKey[key][p]; at != nil {
		return max(at.until.Sub(now), 0)
	}
	return 0
}

func (h *holds) forget(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byKey, key)
}
