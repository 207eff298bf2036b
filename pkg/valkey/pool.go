package valkey

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"sync"
	"time"
)

// idleTimeout is longer than the slowest tick of a controller, so that a steady
// state dials nothing.
const idleTimeout = 2 * time.Minute

// Pool keeps connections between reconciles: while a cluster forms it is looked
// at many times a second. A Node of the pool may be used by several goroutines
// at once; Close gives it back.
type Pool struct {
	dialer Dialer
	now    func() time.Time

	mu      sync.Mutex
	entries map[poolKey]*entry
}

// poolKey tells connections apart. The node is part of it, because a new pod may
// get the IP of a dead one.
type poolKey struct {
	node, address string
	credentials   [sha256.Size]byte
}

// entry is one connection, or the wait for it.
type entry struct {
	tls  *tls.Config
	turn chan struct{} // held by who dials

	// Guarded by the pool.
	node     Node
	users    int
	lastUsed time.Time
	dropped  bool
}

// NewPool returns a pool over a dialer. Start ends connections that nobody uses.
func NewPool(dialer Dialer) *Pool {
	return &Pool{dialer: dialer, now: time.Now, entries: map[poolKey]*entry{}}
}

// Dial returns the kept connection to the target, or makes one.
func (p *Pool) Dial(ctx context.Context, target Target, credentials Credentials) (Node, error) {
	key := poolKey{
		node: target.Node, address: target.Address,
		credentials: sha256.Sum256([]byte(credentials.Username + "\x00" + credentials.Password)),
	}
	e := p.acquire(key, target.TLS)
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		p.release(key, e)
		return nil, context.Cause(ctx)
	}
	defer func() { <-e.turn }()
	if p.connected(e) {
		return p.lend(key, e), nil
	}
	node, err := p.dialer.Dial(ctx, target, credentials)
	if err != nil {
		p.release(key, e)
		return nil, err
	}
	p.mu.Lock()
	e.node = node
	p.mu.Unlock()
	return p.lend(key, e), nil
}

// acquire finds or makes the entry of a key and counts a user. A connection that
// was made trusting another CA or name, or that got no answer last, is not used
// again.
func (p *Pool) acquire(key poolKey, trust *tls.Config) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[key]
	if e != nil && (isLost(e.node) || !sameTrust(e.tls, trust)) {
		p.drop(key, e)
		e = nil
	}
	if e == nil {
		e = &entry{tls: trust, turn: make(chan struct{}, 1)}
		p.entries[key] = e
	}
	e.users++
	return e
}

func (p *Pool) connected(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return e.node != nil
}

// lend hands a connected entry to a user.
func (p *Pool) lend(key poolKey, e *entry) Node {
	var once sync.Once
	return lent{Node: e.node, giveBack: func() { once.Do(func() { p.release(key, e) }) }}
}

func (p *Pool) release(key poolKey, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	e.lastUsed = p.now()
	switch {
	case e.users > 0:
	case e.node == nil:
		// Nobody got a connection: there is nothing to keep.
		if p.entries[key] == e {
			delete(p.entries, key)
		}
	case e.dropped:
		e.node.Close()
	}
}

// drop takes an entry out of the pool; the last user closes it.
func (p *Pool) drop(key poolKey, e *entry) {
	delete(p.entries, key)
	e.dropped = true
	if e.users == 0 && e.node != nil {
		e.node.Close()
	}
}

// Start closes idle connections until ctx ends, and then all.
func (p *Pool) Start(ctx context.Context) error {
	ticker := time.NewTicker(idleTimeout / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.sweep(p.now().Add(-idleTimeout))
		case <-ctx.Done():
			p.sweep(p.now())
			return nil
		}
	}
}

// sweep drops the connections that nobody has used since a time.
func (p *Pool) sweep(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, e := range p.entries {
		if e.users == 0 && !e.lastUsed.After(since) {
			p.drop(key, e)
		}
	}
}

// isLost reports a connection whose last command got no answer. It would dial
// again by itself, but with the TLS configuration that it was made with.
func isLost(node Node) bool {
	c, ok := node.(*connection)
	return ok && c.lost.Load()
}

func sameTrust(a, b *tls.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ServerName == b.ServerName && a.RootCAs.Equal(b.RootCAs)
}

// lent is a pooled connection in the hands of one user.
type lent struct {
	Node
	giveBack func()
}

// Close gives the connection back.
func (l lent) Close() { l.giveBack() }
