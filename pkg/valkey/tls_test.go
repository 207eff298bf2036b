package valkey

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

const podName = "c-0a1b2.c.n.svc.cluster.local"

// leafFor returns a certificate that is its own CA, and a pool that trusts it.
func leafFor(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// noDNS fails every look-up.
func noDNS() *NetDialer {
	return &NetDialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no DNS here")
	}}}
}

func port(t *testing.T, s *fakeServer) string {
	t.Helper()
	_, port, err := net.SplitHostPort(s.address())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestAPodThatDNSDoesNotKnowYetIsDialledByIPUnderItsName(t *testing.T) {
	leaf, trusted := leafFor(t, podName)
	server := serve(t, &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12}, answers(nil))
	target := Target{
		Address: podName + ":" + port(t, server), PodIP: "127.0.0.1",
		TLS: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
	}
	node := dial(t, noDNS(), target)
	if err := node.Ping(context.Background()); err != nil {
		t.Error(err)
	}
	target.PodIP = ""
	if _, err := noDNS().Dial(context.Background(), target, Credentials{}); err == nil {
		t.Error("a name without a record was reached")
	}
}

func TestACertificateForAnotherNameOrCAIsRefusedBeforeTheLogin(t *testing.T) {
	leaf, trusted := leafFor(t, "other.c.n.svc.cluster.local")
	_, otherCA := leafFor(t, "other.c.n.svc.cluster.local")
	server := serve(t, &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12}, answers(nil))
	for name, target := range map[string]Target{
		"another name": {Address: podName + ":" + port(t, server), TLS: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}},
		"another CA": {
			Address: "other.c.n.svc.cluster.local:" + port(t, server),
			TLS:     &tls.Config{RootCAs: otherCA, MinVersion: tls.VersionTLS12},
		},
	} {
		target.PodIP = "127.0.0.1"
		_, err := noDNS().Dial(context.Background(), target, Credentials{Username: "u", Password: "p"})
		if err == nil || !strings.Contains(err.Error(), "TLS handshake") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if sent := server.sent(); len(sent) > 0 {
		t.Errorf("sent to a server that isn't trusted: %v", sent)
	}
}

func TestAPlaintextServerOfATLSClusterIsSentNoPassword(t *testing.T) {
	_, trusted := leafFor(t, podName)
	server := serve(t, nil, answers(nil))
	_, err := NewDialer().Dial(context.Background(), Target{
		Address: server.address(), TLS: &tls.Config{RootCAs: trusted, ServerName: podName, MinVersion: tls.VersionTLS12},
	}, Credentials{Username: "u", Password: "p"})
	if err == nil {
		t.Error("connected without TLS")
	}
	if sent := server.sent(); len(sent) > 0 {
		t.Errorf("sent in the clear: %v", sent)
	}
}
