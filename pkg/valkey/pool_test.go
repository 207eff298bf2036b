package valkey

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// countingDialer makes nodes that count how often they are closed.
type countingDialer struct {
	dials, closes atomic.Int32
	fail          error
	// gate, if set, holds dials up until it is closed; started tells of the first.
	gate, started chan struct{}
}

type countedNode struct {
	Node
	d *countingDialer
}

func (n countedNode) Close() { n.d.closes.Add(1) }

func (d *countingDialer) Dial(ctx context.Context, _ Target, _ Credentials) (Node, error) {
	d.dials.Add(1)
	if d.started != nil {
		d.started <- struct{}{}
	}
	if d.gate != nil {
		select {
		case <-d.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if d.fail != nil {
		return nil, d.fail
	}
	return countedNode{d: d}, nil
}

func (d *countingDialer) want(t *testing.T, dials, closes int32) {
	t.Helper()
	if d.dials.Load() != dials || d.closes.Load() != closes {
		t.Errorf("%d dials and %d closes, want %d and %d", d.dials.Load(), d.closes.Load(), dials, closes)
	}
}

func borrow(t *testing.T, p *Pool, target Target, credentials Credentials) Node {
	t.Helper()
	node, err := p.Dial(context.Background(), target, credentials)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func TestAConnectionIsKeptForTheNextReconcile(t *testing.T) {
	d := &countingDialer{}
	p := NewPool(d)
	target := Target{Node: "a", Address: "10.0.0.1:6379"}
	for range 5 {
		node := borrow(t, p, target, Credentials{})
		node.Close()
		node.Close() // twice is once
	}
	d.want(t, 1, 0)
}

func TestConnectionsAreOfOneNodeAddressAndCredential(t *testing.T) {
	d := &countingDialer{}
	p := NewPool(d)
	target := Target{Node: "a", Address: "10.0.0.1:6379"}
	for _, tc := range []struct {
		target      Target
		credentials Credentials
	}{
		{target, Credentials{Username: "u", Password: "p"}},
		{target, Credentials{Username: "u", Password: "other"}},
		{target, Credentials{Username: "other", Password: "p"}},
		{Target{Node: "b", Address: target.Address}, Credentials{Username: "u", Password: "p"}},
		{Target{Node: "a", Address: "10.0.0.2:6379"}, Credentials{Username: "u", Password: "p"}},
	} {
		borrow(t, p, tc.target, tc.credentials).Close()
	}
	d.want(t, 5, 0)
}

func TestManyUsersShareOneDial(t *testing.T) {
	d := &countingDialer{gate: make(chan struct{})}
	p := NewPool(d)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if node, err := p.Dial(context.Background(), Target{Node: "a"}, Credentials{}); err != nil {
				t.Error(err)
			} else {
				node.Close()
			}
		})
	}
	close(d.gate)
	wg.Wait()
	d.want(t, 1, 0)
}

func TestAUserWaitsForAnothersDialNoLongerThanItsContext(t *testing.T) {
	d := &countingDialer{gate: make(chan struct{}), started: make(chan struct{}, 1)}
	p := NewPool(d)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := p.Dial(context.Background(), Target{Node: "a"}, Credentials{}); err != nil {
			t.Error(err)
		}
	})
	<-d.started
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Dial(ctx, Target{Node: "a"}, Credentials{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	close(d.gate)
	wg.Wait()
	d.want(t, 1, 0)
}

func TestAFailedDialLeavesNothingBehind(t *testing.T) {
	d := &countingDialer{fail: errors.New("refused")}
	p := NewPool(d)
	for range 3 {
		if _, err := p.Dial(context.Background(), Target{Node: "a"}, Credentials{}); err == nil {
			t.Fatal("no error")
		}
	}
	d.want(t, 3, 0)
	if len(p.entries) > 0 {
		t.Errorf("%d entries", len(p.entries))
	}
}

func TestAnotherCAMeansAnotherConnection(t *testing.T) {
	_, oldCA := leafFor(t, podName)
	_, newCA := leafFor(t, podName)
	d := &countingDialer{}
	p := NewPool(d)
	trusting := func(c *tls.Config) Target { return Target{Node: "a", TLS: c} }
	first := borrow(t, p, trusting(&tls.Config{RootCAs: oldCA, MinVersion: tls.VersionTLS12}), Credentials{})
	borrow(t, p, trusting(&tls.Config{RootCAs: oldCA.Clone(), MinVersion: tls.VersionTLS12}), Credentials{}).Close()
	d.want(t, 1, 0)
	borrow(t, p, trusting(&tls.Config{RootCAs: newCA, MinVersion: tls.VersionTLS12}), Credentials{}).Close()
	d.want(t, 2, 0)
	first.Close() // whoever still used the old connection closes it
	d.want(t, 2, 1)
	borrow(t, p, trusting(nil), Credentials{}).Close()
	d.want(t, 3, 2)
}

func TestIdleConnectionsAreClosedAndUsedOnesAreNot(t *testing.T) {
	d := &countingDialer{}
	p := NewPool(d)
	now := time.Unix(1000, 0)
	p.now = func() time.Time { return now }
	borrow(t, p, Target{Node: "idle"}, Credentials{}).Close()
	used := borrow(t, p, Target{Node: "used"}, Credentials{})
	now = now.Add(idleTimeout)
	borrow(t, p, Target{Node: "fresh"}, Credentials{}).Close()
	p.sweep(now.Add(-idleTimeout))
	d.want(t, 3, 1)
	used.Close()
	p.sweep(now.Add(-idleTimeout))
	d.want(t, 3, 1)
}

func TestStopClosesWhatNobodyUses(t *testing.T) {
	d := &countingDialer{}
	p := NewPool(d)
	borrow(t, p, Target{Node: "a"}, Credentials{}).Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	d.want(t, 1, 1)
}

func TestAConnectionThatGotNoAnswerIsNotUsedAgain(t *testing.T) {
	server := serve(t, nil, silent)
	p := NewPool(NewDialer())
	target := Target{Node: "a", Address: server.address()}
	node := borrow(t, p, target, Credentials{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := node.Ping(ctx); err == nil {
		t.Fatal("a silent server answered")
	}
	node.Close()
	borrow(t, p, target, Credentials{}).Close()
	if n := server.connections(); n != 2 {
		t.Errorf("%d connections, want a new one", n)
	}
}
