package valkey

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// ServedLeaf makes a new connection to a server, verified as Dial does it, and
// returns the certificate that it presents. Nothing is sent.
func (d *NetDialer) ServedLeaf(ctx context.Context, target Target) (*x509.Certificate, error) {
	host, _, err := net.SplitHostPort(target.Address)
	if err != nil || host == "" || target.TLS == nil {
		return nil, fmt.Errorf("node %s can't be asked for its certificate at %q", target.Node, target.Address)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := &connection{target: target, resolver: d.Resolver, tls: target.TLS.Clone()}
	if c.tls.ServerName == "" {
		c.tls.ServerName = host
	}
	conn, err := c.dialVerified(ctx, target.Address)
	if err != nil {
		return nil, fmt.Errorf("connect to node %s at %s: %w", target.Node, target.Address, err)
	}
	defer conn.Close()
	encrypted, ok := conn.(*tls.Conn)
	if !ok || len(encrypted.ConnectionState().PeerCertificates) == 0 {
		return nil, fmt.Errorf("node %s presents no certificate", target.Node)
	}
	return encrypted.ConnectionState().PeerCertificates[0], nil
}

// forgiven reports whether a handshake failed only because of the dates of a leaf
// that is known, and a time at which the leaf was valid.
func forgiven(err error, known []string) (time.Time, bool) {
	var invalid x509.CertificateInvalidError
	var failed *tls.CertificateVerificationError
	if !errors.As(err, &failed) || !errors.As(err, &invalid) || invalid.Reason != x509.Expired || len(failed.UnverifiedCertificates) == 0 {
		return time.Time{}, false
	}
	leaf := failed.UnverifiedCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	if !slices.Contains(known, hex.EncodeToString(sum[:])) {
		return time.Time{}, false
	}
	if time.Now().Before(leaf.NotBefore) {
		return leaf.NotBefore, true
	}
	return leaf.NotAfter, true
}
