// Package certs checks the TLS Secret that a cluster names.
//
// What would keep a node from starting, or every client from verifying it, is
// fatal. What leaves nodes running is a warning, even where the cluster can't form
// with it: the server says nothing in that case, so the warning has to.
package certs

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// Keys of the Secret.
const (
	CertificateKey = corev1.TLSCertKey
	PrivateKeyKey  = corev1.TLSPrivateKeyKey
	CAKey          = corev1.ServiceAccountRootCAKey
)

// Names that a leaf has to have.
type Names struct {
	// Service is the name of the headless Service, <cluster>.<namespace>.svc.<domain>.
	Service string
	// External are the shard hostnames that clients outside are given.
	External []string
}

// Wildcard is the name that covers every pod of the Service.
func (n Names) Wildcard() string { return "*." + n.Service }

// Leaf is the certificate that nodes serve.
type Leaf struct {
	// Fingerprint is the SHA-256 of the certificate in lower-case hex.
	Fingerprint string
	// Serial in upper-case hex, as INFO tls prints it.
	Serial string
	// Subject and Issuer as text. A leaf without a subject, as cert-manager issues it,
	// goes by its first name.
	Subject, Issuer string
	// DNSNames of the certificate.
	DNSNames []string
	// NotBefore and NotAfter bound its validity.
	NotBefore, NotAfter time.Time

	certificate *x509.Certificate
}

func newLeaf(c *x509.Certificate) Leaf {
	return Leaf{
		Fingerprint: Fingerprint(c.Raw),
		Serial:      fmt.Sprintf("%X", c.SerialNumber.Bytes()),
		Subject:     subject(c),
		Issuer:      c.Issuer.String(),
		DNSNames:    c.DNSNames,
		NotBefore:   c.NotBefore,
		NotAfter:    c.NotAfter,
		certificate: c,
	}
}

func subject(c *x509.Certificate) string {
	if text := c.Subject.String(); text != "" || len(c.DNSNames) == 0 {
		return text
	}
	return "DNS:" + c.DNSNames[0]
}

// Fingerprint is the SHA-256 of a DER-encoded certificate in lower-case hex.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// Covers is whether a client that verifies names accepts the leaf for the host.
func (l Leaf) Covers(host string) bool {
	return l.certificate != nil && l.certificate.VerifyHostname(host) == nil
}

// Check judges a Secret. With a fatal problem it can't be used at all; Leaf is set
// as soon as tls.crt can be read. Warnings come in the order of their weight. Only
// a Secret without fatal problems is checked for warnings. No message holds
// anything of the private key.
func Check(data map[string][]byte, secretType string, names Names, now time.Time) (leaf Leaf, fatal, warnings []settings.Problem) {
	if secretType != string(corev1.SecretTypeTLS) {
		fatal = append(fatal, problemOfType(secretType))
	}
	if missing := missingKeys(data); len(missing) > 0 {
		return leaf, append(fatal, missing...), nil
	}
	chain, err := parseCertificates(data[CertificateKey])
	if err != nil {
		fatal = append(fatal, invalid("%s %v", CertificateKey, err))
	} else {
		leaf = newLeaf(chain[0])
		fatal = append(fatal, checkKey(chain, data[PrivateKeyKey])...)
		fatal = append(fatal, checkNames(leaf, names)...)
	}
	ca, err := parseCertificates(data[CAKey])
	if err != nil {
		fatal = append(fatal, invalid("%s %v", CAKey, err))
	}
	if len(fatal) > 0 {
		return leaf, fatal, nil
	}
	return leaf, nil, warn(chain, ca, names, now)
}

func invalid(format string, args ...any) settings.Problem {
	return settings.Problem{Reason: v1alpha1.ReasonTLSInvalid, Message: fmt.Sprintf(format, args...)}
}

func problemOfType(secretType string) settings.Problem {
	return invalid("its type is %q, but must be %s: a type can't be changed, so create the Secret anew", secretType, corev1.SecretTypeTLS)
}

func missingKeys(data map[string][]byte) []settings.Problem {
	var problems []settings.Problem
	for _, key := range []string{CertificateKey, PrivateKeyKey, CAKey} {
		if len(data[key]) > 0 {
			continue
		}
		text := "it has no " + key
		if key == CAKey {
			text += ": nodes and clients verify each other by it; an issuer of a private CA fills it in, an ACME issuer doesn't"
		}
		problems = append(problems, invalid("%s", text))
	}
	return problems
}

// checkNames demands the Service's name, by whichever entry, and the wildcard as
// it is: what else covers the Service need not cover its pods.
func checkNames(leaf Leaf, names Names) []settings.Problem {
	var missing []string
	if !leaf.Covers(names.Service) {
		missing = append(missing, names.Service)
	}
	if !slices.ContainsFunc(leaf.DNSNames, func(name string) bool {
		return strings.EqualFold(strings.TrimSuffix(name, "."), names.Wildcard())
	}) {
		missing = append(missing, names.Wildcard())
	}
	if len(missing) == 0 {
		return nil
	}
	have := "it has no DNS names, and a common name doesn't count"
	if len(leaf.DNSNames) > 0 {
		have = "its DNS names are " + settings.List(leaf.DNSNames)
	}
	return []settings.Problem{invalid("the certificate in %s lacks the names %s; %s: issue it with both %s and %s",
		CertificateKey, strings.Join(missing, ", "), have, names.Service, names.Wildcard())}
}
