package sim

import (
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// Bounds of how often the manager looks when no watch wakes it.
const (
	fastest = 50 * time.Millisecond
	slowest = 10 * time.Second
)

// holds counts, for each position, the nodes that died before they joined.
type holds map[plan.Position]*hold

type hold struct {
	dead  map[string]bool
	until time.Duration
}

// died notes a node that died before it joined, once.
func (h holds) died(p plan.Position, node string, now time.Duration) {
	at := h[p]
	if at == nil {
		at = &hold{dead: map[string]bool{}}
		h[p] = at
	}
	if at.dead[node] {
		return
	}
	at.dead[node] = true
	wait := 5 * time.Minute
	if n := len(at.dead) - 1; n < 5 {
		wait = min(10*time.Second<<n, wait)
	}
	at.until = now + wait
}

// remaining is how long a position has to wait for its next node.
func (h holds) remaining(p plan.Position, now time.Duration) time.Duration {
	if at := h[p]; at != nil {
		return max(at.until-now, 0)
	}
	return 0
}
