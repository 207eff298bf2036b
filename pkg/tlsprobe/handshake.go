// Package tlsprobe looks at how one server speaks TLS: which certificate it shows,
// whom it lets in, and what answers in plaintext. It observes and judges nothing.
//
// A server whose certificate was not verified is sent no byte of an application:
// every command waits for a handshake that verified, and the plaintext probe is made
// only where no wrong certificate was shown.
package tlsprobe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Dial opens a stream to one port of one server.
type Dial func(ctx context.Context) (net.Conn, error)

// stepTimeout bounds each of connecting, a handshake, and an exchange. A server
// that is well needs milliseconds.
const stepTimeout = 3 * time.Second

// Handshake is what became of a TLS handshake under a name.
type Handshake struct {
	// Name that the certificate was verified for.
	Name string
	// DialErr is why there was no connection; nothing else is set then.
	DialErr error
	// Err is why the handshake failed, if it did.
	Err error
	// Chain that the server presented, leaf first; empty if it presented none.
	Chain []*x509.Certificate
	// Trusted: the chain was verified for the name. It may be with Err set, when a
	// server refuses a client only after it has shown its certificate.
	Trusted bool
	// ClientCertificate: the server asked for a certificate of the client.
	ClientCertificate bool
}

// OK is whether the handshake is over and the server trusted.
func (h Handshake) OK() bool { return h.DialErr == nil && h.Err == nil && h.Trusted }

// Mistrusted is whether the server showed a certificate that was not accepted.
func (h Handshake) Mistrusted() bool { return len(h.Chain) > 0 && !h.Trusted }

// shake dials and makes a handshake. The connection is nil unless it succeeded.
func shake(ctx context.Context, dial Dial, name string, roots *x509.CertPool, now func() time.Time) (Handshake, *tls.Conn) {
	h := Handshake{Name: name}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	raw, err := dial(ctx)
	if err != nil {
		h.DialErr = err
		return h, nil
	}
	conn := tls.Client(raw, &tls.Config{
		ServerName: name, RootCAs: roots, Time: now, MinVersion: tls.VersionTLS12,
		VerifyConnection: func(state tls.ConnectionState) error {
			h.Chain, h.Trusted = state.PeerCertificates, true
			return nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			h.ClientCertificate = true
			return &tls.Certificate{}, nil
		},
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		var refused *tls.CertificateVerificationError
		if errors.As(err, &refused) {
			h.Chain = refused.UnverifiedCertificates
		}
		if ctx.Err() != nil && len(h.Chain) == 0 {
			err = fmt.Errorf("no answer to the handshake within %s", stepTimeout)
		}
		h.Err = err
		return h, nil
	}
	return h, conn
}

// Look makes one handshake under a name and nothing else.
func Look(ctx context.Context, dial Dial, name string, roots *x509.CertPool, now func() time.Time) Handshake {
	h, conn := shake(ctx, dial, name, roots, now)
	if conn != nil {
		conn.Close()
	}
	return h
}

// ForeignCA is a pool with an authority that has signed nothing.
func ForeignCA() (*x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a foreign CA: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a CA that signed nothing"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(0, 0).AddDate(200, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a foreign CA: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make a foreign CA: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return pool, nil
}
