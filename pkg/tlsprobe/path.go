package tlsprobe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	valkeygo "github.com/valkey-io/valkey-go"
)

// Path is how a cluster-aware client goes.
type Path struct {
	// First is the host:port that the client is given.
	First string
	// Route finds the way to a host and port that servers name; false means that
	// nothing is known by that name.
	Route func(host, port string) (Dial, bool)
	// Roots, Now and Login are as for one server.
	Roots *x509.CertPool
	Now   func() time.Time
	Login Credentials
	// Shards are what the client has to reach: for each whether a slot is its.
	Shards []func(slot int) bool
}

// Walked is how far the client came.
type Walked struct {
	// Err is why it got nowhere: no connection, or no answer.
	Err error
	// Refusal is the server's error in place of the cluster's map.
	Refusal string
	// Shards in the order of the path.
	Shards []Reached
}

// Reached is what became of the way to one shard.
type Reached struct {
	// Address that answered, as the cluster announces it.
	Address string
	// Redirected: a server sent the client there.
	Redirected bool
	// Err is why there was no answer. Refusal is the server's error if it was one:
	// the way is fine then, the user isn't.
	Err     error
	Refusal string
}

// pathTimeout bounds the walk.
const pathTimeout = 8 * time.Second

// keysTried are enough to meet a slot of a shard that has few.
const keysTried = 1 << 20

// Walk asks for a key of every shard: first a server that need not have it, and
// then the one that it sends the client to. Every connection is verified for the
// name in the address. Keys are only read, and don't exist.
func Walk(ctx context.Context, p Path) Walked {
	ctx, cancel := context.WithTimeout(ctx, pathTimeout)
	defer cancel()
	connections := &opened{}
	stop := context.AfterFunc(ctx, connections.close)
	defer stop()
	defer connections.close()
	option := options(p.Login)
	option.InitAddress = []string{p.First}
	option.DialCtxFn = dialer(func(_ context.Context, address string) (net.Conn, error) {
		return connections.add(p.dial(ctx, address))
	})
	client, err := valkeygo.NewClient(option)
	if client != nil {
		defer client.Close()
		defer connections.close()
	}
	var w Walked
	if err != nil {
		w.Refusal, w.Err = answer(err)
		return w
	}
	if client.Mode() != valkeygo.ClientModeCluster {
		w.Err = fmt.Errorf("%s is not a server of a cluster", p.First)
		return w
	}
	w.Shards = make([]Reached, len(p.Shards))
	var wg sync.WaitGroup
	for i, has := range p.Shards {
		wg.Go(func() { w.Shards[i] = reach(ctx, client, i, has) })
	}
	wg.Wait()
	return w
}

// dial connects to an address and verifies the name in it.
func (p Path) dial(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("a server names the address %q: %w", address, err)
	}
	dial, ok := p.Route(host, port)
	if !ok {
		return nil, fmt.Errorf("a server names the address %s, which belongs to no node of the cluster", address)
	}
	h, conn := shake(ctx, dial, host, p.Roots, p.Now)
	switch {
	case h.DialErr != nil:
		return nil, fmt.Errorf("connect to %s: %w", address, h.DialErr)
	case h.Err != nil:
		return nil, fmt.Errorf("TLS handshake with %s: %w", address, h.Err)
	}
	return conn, nil
}

// reach asks for a key of one shard. Whom to ask first differs from shard to shard,
// so that several servers send clients on.
func reach(ctx context.Context, client valkeygo.Client, index int, has func(int) bool) Reached {
	key := ""
	for i := range keysTried {
		k := "verify-tls:" + strconv.Itoa(i)
		command := client.B().Get().Key(k).Build()
		if has(int(command.Slot())) {
			key = k
			break
		}
	}
	if key == "" {
		return Reached{Err: errors.New("no key of the shard was found")}
	}
	nodes := client.Nodes()
	addresses := make([]string, 0, len(nodes))
	for address := range nodes {
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	var r Reached
	var err error
	for i := range addresses {
		// One that can't be reached says nothing of the way to others.
		r.Address = addresses[(index+1+i)%len(addresses)]
		err = get(ctx, nodes[r.Address], key)
		if _, answered := valkeygo.IsValkeyErr(err); err == nil || answered {
			break
		}
	}
	if reply, is := valkeygo.IsValkeyErr(err); is {
		if to, moved := reply.IsMoved(); moved {
			r.Address, r.Redirected = to, true
			node, known := nodes[to]
			if !known {
				r.Err = fmt.Errorf("redirected to %s, which the cluster's own map doesn't have", to)
				return r
			}
			err = get(ctx, node, key)
		}
	}
	r.Refusal, r.Err = answer(err)
	return r
}

func get(ctx context.Context, client valkeygo.Client, key string) error {
	err := client.Do(ctx, client.B().Get().Key(key).Build()).Error()
	if valkeygo.IsValkeyNil(err) {
		return nil
	}
	return err
}

// dialer fits a dial function to the library.
func dialer(dial func(context.Context, string) (net.Conn, error)) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return dial(ctx, address)
	}
}

// opened are connections that have to be closed: the library's own closing waits
// for answers.
type opened struct {
	mu   sync.Mutex
	list []net.Conn
	over bool
}

func (o *opened) add(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		conn.Close()
		return nil, context.DeadlineExceeded
	}
	o.list = append(o.list, conn)
	return conn, nil
}

func (o *opened) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	for _, conn := range o.list {
		conn.Close()
	}
}
