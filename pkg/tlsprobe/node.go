package tlsprobe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"sync"
	"time"
)

// Target is one server and how it is reached.
type Target struct {
	// Client and Bus dial the client port and the bus port; without Bus that is not
	// looked at.
	Client, Bus Dial
	// Name is what clients dial this server by, Service the name that all servers
	// share; without Service that name is not tried.
	Name, Service string
	// Roots are trusted, Foreign must not lead to trust.
	Roots, Foreign *x509.CertPool
	// Now is the time at which certificates are verified.
	Now func() time.Time
	// Login for the commands.
	Login Credentials
}

// Node is what was seen of one server. What is nil was not tried, since the server
// could not be trusted.
type Node struct {
	// Own is the handshake under the server's own name.
	Own Handshake
	// Service is the handshake under the name of all.
	Service *Handshake
	// Foreign is a handshake that trusts another CA.
	Foreign *Handshake
	// Plain is an attempt without TLS.
	Plain *Plaintext
	// Session is the answer to commands.
	Session *Session
	// Bus is the handshake with the bus port, BusPlain an attempt without TLS there.
	Bus      *Handshake
	BusPlain *Plaintext
}

// Probe looks at one server. It takes a few round trips when the server is well,
// and seconds when it is silent.
func Probe(ctx context.Context, t Target) Node {
	var n Node
	var conn *tls.Conn
	n.Own, conn = shake(ctx, t.Client, t.Name, t.Roots, t.Now)
	if n.Own.DialErr != nil {
		return n
	}
	var wg sync.WaitGroup
	if conn != nil {
		wg.Go(func() { n.Session = talk(ctx, conn, t.Login) })
	}
	if n.Own.Trusted {
		wg.Go(func() {
			h := Look(ctx, t.Client, t.Name, t.Foreign, t.Now)
			n.Foreign = &h
		})
	}
	if t.Service != "" && len(n.Own.Chain) > 0 {
		wg.Go(func() {
			h := Look(ctx, t.Client, t.Service, t.Roots, t.Now)
			n.Service = &h
		})
	}
	if !n.Own.Mistrusted() {
		wg.Go(func() {
			p := speakPlain(ctx, t.Client)
			n.Plain = &p
		})
	}
	if t.Bus != nil {
		wg.Go(func() { n.Bus, n.BusPlain = probeBus(ctx, t) })
	}
	wg.Wait()
	return n
}

func probeBus(ctx context.Context, t Target) (*Handshake, *Plaintext) {
	h := Look(ctx, t.Bus, t.Name, t.Roots, t.Now)
	if h.DialErr != nil || h.Mistrusted() {
		return &h, nil
	}
	p := speakPlain(ctx, t.Bus)
	return &h, &p
}
