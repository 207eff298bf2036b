package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
)

// minRSABits is what OpenSSL demands at the level of security that images are built
// with: a server refuses to load less, of a leaf as of an intermediate.
const minRSABits = 2048

// refusedKey says why servers don't load a chain for one of its keys, or nothing.
func refusedKey(chain []*x509.Certificate) string {
	if key, ok := chain[0].PublicKey.(*ecdsa.PublicKey); ok && key.Curve == elliptic.P224() {
		return PrivateKeyKey + " is a key on curve P-224, which no TLS handshake can use: issue the certificate with P-256"
	}
	for i, c := range chain {
		if bits := weakBits(c); bits > 0 {
			return fmt.Sprintf("certificate number %d in %s has an RSA key of %d bits: servers refuse less than %d; issue it with a longer key",
				i+1, CertificateKey, bits, minRSABits)
		}
	}
	return ""
}

// weakBits is the length of an RSA key that is too short, else 0.
func weakBits(c *x509.Certificate) int {
	if key, ok := c.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < minRSABits {
		return key.N.BitLen()
	}
	return 0
}

// obsoleteSignature is whether a certificate is signed in a way that neither
// servers nor clients accept any more.
func obsoleteSignature(c *x509.Certificate) bool {
	switch c.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		return true
	}
	return false
}
