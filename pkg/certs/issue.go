package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// clockSkew is how far clocks of other machines may be behind.
const clockSkew = 5 * time.Minute

// Usages that a leaf needs, as cert-manager writes them.
var Usages = []string{"server auth", "client auth"}

// DNSNames are all names that a leaf has to have, in the order of the
// documentation.
func (n Names) DNSNames() []string {
	return slices.Concat([]string{n.Service, n.Wildcard()}, n.External)
}

// SelfSigned makes the content of a Secret for development: a leaf for the names,
// signed by a CA of its own whose key is kept nowhere, so that nobody can sign
// another one. Both are valid from now on for the duration.
func SelfSigned(names Names, now time.Time, valid time.Duration) (map[string][]byte, error) {
	ca := x509.Certificate{
		Subject: pkix.Name{CommonName: "CA of " + names.Service}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	leaf := x509.Certificate{
		Subject: pkix.Name{CommonName: names.Service}, DNSNames: names.DNSNames(), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	// Longer common names are not allowed, and nobody reads them: the names are in
	// the extension.
	for _, c := range []*x509.Certificate{&ca, &leaf} {
		if c.NotBefore, c.NotAfter = now.Add(-clockSkew), now.Add(valid); len(c.Subject.CommonName) > 64 {
			c.Subject.CommonName = c.Subject.CommonName[:64]
		}
	}
	root, rootKey, err := sign(&ca, nil, nil)
	if err != nil {
		return nil, err
	}
	certificate, key, err := sign(&leaf, root, rootKey)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the private key: %w", err)
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		CAKey:                   pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: root.Raw}),
	}, nil
}

// sign makes a key and a certificate for it, signed by the issuer or by itself.
func sign(template, issuer *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a private key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, fmt.Errorf("make a serial number: %w", err)
	}
	if issuer == nil {
		issuer, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), by)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return certificate, key, nil
}

// Sort tells a file of PEM apart by what its blocks are, as keys of a Secret: the
// key, the certificates, and a root that is not the first certificate, as the CA.
func Sort(file []byte) map[string][]byte {
	data := map[string][]byte{}
	for rest := file; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		text := pem.EncodeToMemory(block)
		switch c, err := x509.ParseCertificate(block.Bytes); {
		case block.Type != certificateBlock:
			data[PrivateKeyKey] = append(data[PrivateKeyKey], text...)
		case err == nil && isSelfIssued(c) && len(data[CertificateKey]) > 0:
			data[CAKey] = append(data[CAKey], text...)
		default:
			data[CertificateKey] = append(data[CertificateKey], text...)
		}
	}
	return data
}
