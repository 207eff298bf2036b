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
)

// pace remembers since when each cluster has been waiting for the same thing.
type pace struct {
	mu    sync.Mutex
	since map[types.NamespacedName]mark
}

type mark struct {
	what string
	at   time.Time
}

func newPace() *pace { return &pace{since: map[types.NamespacedName]mark{}} }

// next returns when to look at a cluster again. What is the thing waited for, empty
// when the cluster is as wished.
func (p *pace) next(key types.NamespacedName, what string, changed bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.since[key]
	if !ok || m.what != what {
		m = mark{what: what, at: now}
		p.since[key] = m
	}
	if changed {
		return fastest
	}
	if what == "" {
		return slowest
	}
	return min(max(now.Sub(m.at)/10, fastest), slowest)
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
