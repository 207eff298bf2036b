package valkey

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	valkeygo "github.com/valkey-io/valkey-go"
)

const (
	// dialTimeout bounds each of connecting (with the TLS handshake) and logging in.
	dialTimeout = 2 * time.Second
	// commandTimeout bounds a command that the caller gives more time.
	commandTimeout = 5 * time.Second

	// Buffers for a few commands at a time; the library's are half a megabyte each,
	// made for applications.
	readBuffer  = 32 << 10
	writeBuffer = 8 << 10
	ringScale   = 5
)

// Sent is a command that a connection carried out, for traces. It has no
// arguments, which may be secret.
type Sent struct {
	Node, Command string
	Err           error
}

// NetDialer dials servers over the network.
type NetDialer struct {
	// Trace, if set, is told of every command.
	Trace func(Sent)
	// Resolver looks names up; nil is Go's own.
	Resolver *net.Resolver
}

// NewDialer returns a dialer that makes a connection for each Dial.
func NewDialer() *NetDialer { return &NetDialer{} }

// Dial connects and logs in.
func (d *NetDialer) Dial(ctx context.Context, target Target, credentials Credentials) (Node, error) {
	host, _, err := net.SplitHostPort(target.Address)
	if err != nil || host == "" {
		return nil, fmt.Errorf("node %s has no address to dial yet (%q)", target.Node, target.Address)
	}
	c := &connection{target: target, trace: d.Trace, resolver: d.Resolver, opening: ctx}
	if target.TLS != nil {
		c.tls = target.TLS.Clone()
		if c.tls.ServerName == "" {
			c.tls.ServerName = host
		}
	}
	// The library logs in under a context of its own.
	stop := context.AfterFunc(ctx, c.disconnect)
	client, err := valkeygo.NewClient(valkeygo.ClientOption{
		InitAddress: []string{target.Address},
		Username:    credentials.Username,
		Password:    credentials.Password,
		DialCtxFn:   c.dial,
		// A negative interval turns off the library's PING of every second.
		Dialer:            net.Dialer{Timeout: dialTimeout, KeepAlive: -1},
		ConnWriteTimeout:  commandTimeout,
		ForceSingleClient: true,
		// One connection, and nothing sent but what is asked: no CLIENT TRACKING, no
		// CLIENT SETINFO (both are denied to the manager), no command sent twice.
		PipelineMultiplex:   -1,
		DisableCache:        true,
		ClientSetInfo:       valkeygo.DisableClientSetInfo,
		DisableRetry:        true,
		ReadBufferEachConn:  readBuffer,
		WriteBufferEachConn: writeBuffer,
		RingScaleEachConn:   ringScale,
	})
	stop()
	c.opening = nil
	if err != nil {
		if client != nil {
			client.Close()
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("connect to node %s at %s: %w", target.Node, target.Address, err)
	}
	c.client = client
	return c, nil
}

// connection is a Node over one TCP connection at a time.
type connection struct {
	target   Target
	tls      *tls.Config
	trace    func(Sent)
	resolver *net.Resolver
	client   valkeygo.Client
	// opening is the context of Dial, while it runs.
	opening context.Context

	// lost is set while the last command got no answer.
	lost atomic.Bool

	mu  sync.Mutex
	raw net.Conn
}

// dial makes the TCP connection, at first and again after it broke.
func (c *connection) dial(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if c.opening != nil {
		stop := context.AfterFunc(c.opening, cancel)
		defer stop()
	}
	raw, err := c.dialVerified(ctx, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.raw = raw
	c.mu.Unlock()
	if c.opening != nil && c.opening.Err() != nil {
		c.disconnect()
		return nil, c.opening.Err()
	}
	return raw, nil
}

// dialVerified connects, and with TLS verifies who answers. A server that goes on
// with an expired certificate which it is known to have is dialled once more: it has
// to be told of a new one.
func (c *connection) dialVerified(ctx context.Context, address string) (net.Conn, error) {
	if c.tls == nil {
		return c.dialTCP(ctx, address)
	}
	encrypted, err := c.handshake(ctx, address, c.tls)
	if at, ok := forgiven(err, c.target.KnownLeaves); ok {
		then := c.tls.Clone()
		then.Time = func() time.Time { return at }
		encrypted, err = c.handshake(ctx, address, then)
	}
	if err != nil {
		return nil, err
	}
	return encrypted, nil
}

func (c *connection) handshake(ctx context.Context, address string, config *tls.Config) (*tls.Conn, error) {
	raw, err := c.dialTCP(ctx, address)
	if err != nil {
		return nil, err
	}
	encrypted := tls.Client(raw, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("TLS handshake for the name %s: %w", config.ServerName, err)
	}
	return encrypted, nil
}

// dialTCP falls back to the pod's IP only when the name can't be resolved: DNS is
// some seconds behind a new pod, and needs not work for the manager to.
func (c *connection) dialTCP(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Resolver: c.resolver}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	var dns *net.DNSError
	if c.target.PodIP == "" || !errors.As(err, &dns) {
		return raw, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(c.target.PodIP, port))
}

// disconnect drops the TCP connection: what waits for it fails at once, and the
// next command makes a new one.
func (c *connection) disconnect() {
	c.mu.Lock()
	raw := c.raw
	c.raw = nil
	c.mu.Unlock()
	if raw != nil {
		raw.Close()
	}
}

// Close drops the connection for good.
func (c *connection) Close() {
	c.disconnect() // or the library waits for a last PING
	c.client.Close()
}
