package reach

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// Tick is how often everything is verified although nothing is known to have
	// changed.
	Tick = 30 * time.Second
	// quickest is how soon what isn't there yet is asked for again.
	quickest = 250 * time.Millisecond
	// slowestRetry bounds how rare that gets.
	slowestRetry = 10 * time.Second
)

// Pace remembers, for each cluster, when everything was last verified and since when
// something is missing. A restart of the manager forgets it, and verifies once more.
type Pace struct {
	mu       sync.Mutex
	verified map[types.NamespacedName]time.Time
	missing  map[types.NamespacedName]time.Time
}

// Due reports whether a tick has passed since everything was verified, and notes
// that it is verified now if so.
func (p *Pace) Due(key types.NamespacedName, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.verified[key]; ok && now.Sub(at) < Tick {
		return false
	}
	if p.verified == nil {
		p.verified = map[types.NamespacedName]time.Time{}
	}
	p.verified[key] = now
	return true
}

// Next returns when to look again: soon while something is missing, less and less
// often the longer it is, and else when the tick is due.
func (p *Pace) Next(key types.NamespacedName, missing bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !missing {
		delete(p.missing, key)
		return max(Tick-now.Sub(p.verified[key]), quickest)
	}
	since, ok := p.missing[key]
	if !ok {
		if p.missing == nil {
			p.missing = map[types.NamespacedName]time.Time{}
		}
		p.missing[key] = now
		return quickest
	}
	return min(max(now.Sub(since)/10, quickest), slowestRetry)
}

// Forget a cluster that is gone.
func (p *Pace) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.verified, key)
	delete(p.missing, key)
}
