package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

const (
	service  = "my-cluster.my-app.svc.cluster.local"
	wildcard = "*." + service
)

// now is the time of all tests.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// issued is a certificate with its key.
type issued struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func (i issued) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.certificate.Raw})
}

func (i issued) keyPEM(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// issue signs a template, or lets it sign itself. Dates default to a year around
// now.
func issue(t testing.TB, template x509.Certificate, signer *issued) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(0x0abc)
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = now.AddDate(0, -6, 0)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = now.AddDate(0, 6, 0)
	}
	by := issued{certificate: &template, key: key}
	if signer != nil {
		by = *signer
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return issued{certificate: certificate, key: key}
}

func caTemplate(name string) x509.Certificate {
	return x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
}

// leafTemplate is the documented certificate.
func leafTemplate() x509.Certificate {
	return x509.Certificate{
		Subject: pkix.Name{CommonName: "my-cluster"}, DNSNames: []string{service, wildcard},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func secretOf(t testing.TB, leaf issued, ca ...issued) map[string][]byte {
	t.Helper()
	data := map[string][]byte{"tls.crt": leaf.certPEM(), "tls.key": leaf.keyPEM(t)}
	for _, c := range ca {
		data["ca.crt"] = append(data["ca.crt"], c.certPEM()...)
	}
	return data
}
