package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
)

func TestIssuedCertificatesVerify(t *testing.T) {
	a, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Issue("system:node:n", []string{"system:nodes"}, []string{"172.30.7.11", "n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		t.Errorf("key and certificate differ: %v", err)
	}
	block, _ := pem.Decode(pair.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CertPEM())
	for _, name := range []string{"172.30.7.11", "n"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "other"}); err == nil {
		t.Error("the certificate is valid for a name that it wasn't made for")
	}
	if cert.Subject.CommonName != "system:node:n" || cert.Subject.Organization[0] != "system:nodes" {
		t.Errorf("issued for %s", cert.Subject)
	}
}
