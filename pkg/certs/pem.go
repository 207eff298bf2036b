package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

const (
	certificateBlock = "CERTIFICATE"
	crlBlock         = "X509 CRL" // a revocation list, which servers read along with authorities
)

// parseCertificates reads every certificate of a PEM file. One that can't be read
// is an error: the server would stop there, or go on without it.
func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	blocks := 0
	kinds := map[string]bool{}
	var certificates []*x509.Certificate
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		blocks++
		kinds[block.Type] = true
		if block.Type == crlBlock {
			if _, err := x509.ParseRevocationList(block.Bytes); err != nil {
				return nil, fmt.Errorf("has a revocation list that can't be parsed, which servers refuse: %w", err)
			}
		}
		if block.Type != certificateBlock {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a certificate, number %d, that can't be parsed: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, c)
	}
	switch {
	case bytes.Count(data, []byte("-----BEGIN ")) != blocks:
		return nil, errors.New("has a block that is broken PEM")
	case blocks == 0:
		return nil, errors.New("is not PEM: it must hold -----BEGIN CERTIFICATE-----")
	case hasHeaders(data):
		return nil, errors.New("has a blank line or a header inside a PEM block, where servers stop reading: take it out")
	case len(certificates) > 0:
		return certificates, nil
	}
	for kind := range kinds {
		if strings.HasSuffix(kind, "PRIVATE KEY") {
			return nil, errors.New("holds a private key in place of a certificate")
		}
	}
	return nil, errors.New("holds PEM, but no certificate")
}

// hasHeaders reports whether a line between BEGIN and END is no base64. For servers a
// blank line there ends a list of headers; encoding/pem reads over it, and over
// headers that servers don't know.
func hasHeaders(data []byte) bool {
	inside := false
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		switch {
		case bytes.HasPrefix(line, []byte("-----BEGIN ")):
			inside = true
		case bytes.HasPrefix(line, []byte("-----END ")):
			inside = false
		case inside && (len(line) == 0 || bytes.ContainsRune(line, ':')):
			return true
		}
	}
	return false
}

// checkKey wants the key to be that of the first certificate of the chain, since
// that is the one that servers present.
func checkKey(chain []*x509.Certificate, key []byte) []settings.Problem {
	owner, problem := keyOwner(chain, key)
	switch {
	case problem != "":
		return []settings.Problem{invalid("%s", problem)}
	case owner > 0:
		return []settings.Problem{leafNotFirst(chain, owner)}
	}
	return nil
}

func leafNotFirst(chain []*x509.Certificate, owner int) settings.Problem {
	return invalid("%s must begin with the leaf: %s belongs to certificate number %d in it (%s)", CertificateKey, PrivateKeyKey, owner+1, chain[owner].Subject)
}

// keyOwner finds the certificate of the chain that the key belongs to, or says why
// there is none. Errors of the standard library say what they found, never any of
// the key.
func keyOwner(chain []*x509.Certificate, key []byte) (index int, problem string) {
	if isEncrypted(key) {
		return 0, PrivateKeyKey + " is encrypted with a passphrase: store it without one"
	}
	if hasHeaders(key) {
		return 0, PrivateKeyKey + " has a blank line or a header inside a PEM block, where servers stop reading: take it out"
	}
	var first error
	for i, c := range chain {
		_, err := tls.X509KeyPair(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw}), key)
		if err == nil {
			return i, refusedKey(chain)
		}
		if i == 0 {
			first = err
		}
	}
	if strings.Contains(first.Error(), "does not match") {
		return 0, fmt.Sprintf("%s is not the key of the certificate in %s: put in the pair that was issued together", PrivateKeyKey, CertificateKey)
	}
	return 0, fmt.Sprintf("%s can't be read: %v", PrivateKeyKey, first)
}

func isEncrypted(key []byte) bool {
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return false
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return true
		}
	}
}
