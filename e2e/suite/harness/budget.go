//go:build e2e

package harness

import "sync"

// maxPods bounds how many pods all tests together have at once: the nodes of the
// local Kubernetes share one small machine.
const maxPods = 48

// budget is how many more pods there may be.
type budget struct {
	mu    sync.Mutex
	free  int
	freed *sync.Cond
}

func newBudget(n int) *budget {
	b := &budget{free: n}
	b.freed = sync.NewCond(&b.mu)
	return b
}

// take waits for n pods.
func (b *budget) take(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.free < n {
		b.freed.Wait()
	}
	b.free -= n
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.freed.Broadcast()
}
