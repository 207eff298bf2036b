package valkey

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"math/big"
	"testing"
	"time"
)

// expiredFor is leafFor with a certificate that expired yesterday, and its
// fingerprint.
func expiredFor(t *testing.T, name string) (tls.Certificate, *x509.CertPool, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
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
	sum := sha256.Sum256(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool, hex.EncodeToString(sum[:])
}

// A cluster whose certificate has expired is managed as usual, and gets its new one.
func TestAnExpiredCertificateIsForgivenWhenItIsKnownAndNothingElseIsWrong(t *testing.T) {
	leaf, trusted, fingerprint := expiredFor(t, podName)
	_, otherCA := leafFor(t, podName)
	server := serve(t, &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12}, answers(nil))
	for name, c := range map[string]struct {
		host  string
		roots *x509.CertPool
		known []string
		want  bool
	}{
		"known":        {podName, trusted, []string{"other", fingerprint}, true},
		"unknown":      {podName, trusted, []string{"other"}, false},
		"another CA":   {podName, otherCA, []string{fingerprint}, false},
		"another name": {"c-fffff.c.n.svc.cluster.local", trusted, []string{fingerprint}, false},
	} {
		target := Target{
			Node: "c-0a1b2", Address: c.host + ":" + port(t, server), PodIP: "127.0.0.1", KnownLeaves: c.known,
			TLS: &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12},
		}
		node, err := noDNS().Dial(context.Background(), target, Credentials{})
		if (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			node.Close()
		}
		served, err := noDNS().ServedLeaf(context.Background(), target)
		if (err == nil) != c.want {
			t.Errorf("%s: the certificate can't be read: %v", name, err)
		}
		if err == nil && served.SerialNumber.Int64() != 2 {
			t.Errorf("%s: the server presents %v", name, served.SerialNumber)
		}
	}
}

func TestReadingACertificateSendsNothing(t *testing.T) {
	leaf, trusted := leafFor(t, podName)
	server := serve(t, &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12}, answers(nil))
	target := Target{Address: podName + ":" + port(t, server), PodIP: "127.0.0.1", TLS: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	if _, err := noDNS().ServedLeaf(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if sent := server.sent(); len(sent) > 0 {
		t.Errorf("it was sent %v", sent)
	}
	target.TLS = nil
	if _, err := noDNS().ServedLeaf(t.Context(), target); err == nil {
		t.Error("a plaintext server has a certificate")
	}
}
