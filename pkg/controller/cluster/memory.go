package cluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// moments remembers, for each cluster, when things happened that no server and no
// object tells: since when a node is silent, when a failover was asked for. A
// restart of the manager forgets them, which only makes it wait once more.
type moments struct {
	mu sync.Mutex
	at map[types.NamespacedName]map[string]time.Time
}

func newMoments() *moments {
	return &moments{at: map[types.NamespacedName]map[string]time.Time{}}
}

// mark notes that something happened now, whether or not it did before.
func (m *moments) mark(key types.NamespacedName, what string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at[key] == nil {
		m.at[key] = map[string]time.Time{}
	}
	m.at[key][what] = now
}

// since returns how long ago something was first noted; when goes on being true it
// is noted now if it wasn't, when it ends it is forgotten.
func (m *moments) since(key types.NamespacedName, what string, going bool, now time.Time) time.Duration {
	if !going {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.at[key], what)
		return 0
	}
	if ago, ok := m.ago(key, what, now); ok {
		return ago
	}
	m.mark(key, what, now)
	return 0
}

// ago returns how long ago something was noted.
func (m *moments) ago(key types.NamespacedName, what string, now time.Time) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.at[key][what]
	return now.Sub(at), ok
}

func (m *moments) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.at, key)
}
