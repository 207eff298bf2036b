package certs

import (
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// Names of the checks of Findings, in their order.
const (
	CheckType          = "type"
	CheckKeys          = "keys"
	CheckCertificate   = "certificate"
	CheckLeafFirst     = "leaf-first"
	CheckKey           = "private-key"
	CheckNames         = "names"
	CheckCA            = "ca"
	CheckUsages        = "usages"
	CheckChain         = "chain"
	CheckDates         = "dates"
	CheckExternalNames = "external-names"
)

// Finding is the outcome of one check of a Secret.
type Finding struct {
	// Check is the name of the check.
	Check string
	// Problems that it found; none if it passed.
	Problems []settings.Problem
	// Fatal problems keep the Secret from being used.
	Fatal bool
	// Missing names what the check needs and couldn't have; it was not made then.
	Missing string
}

// Findings are what Check finds, check by check, for a reader who wants to see what
// passed too. Every check that can be made is made: a fatal problem hides no
// warning.
func Findings(data map[string][]byte, secretType string, names Names, now time.Time) (leaf Leaf, findings []Finding) {
	add := func(check string, fatal bool, missing string, problems ...settings.Problem) {
		findings = append(findings, Finding{Check: check, Problems: problems, Fatal: fatal && len(problems) > 0, Missing: missing})
	}
	var wrongType []settings.Problem
	if secretType != string(corev1.SecretTypeTLS) {
		wrongType = append(wrongType, problemOfType(secretType))
	}
	add(CheckType, true, "", wrongType...)
	add(CheckKeys, true, "", missingKeys(data)...)

	chain, noChain, problems := readable(data, CertificateKey)
	add(CheckCertificate, true, absent(data, CertificateKey), problems...)
	ca, noCA, caProblems := readable(data, CAKey)
	if noChain != "" {
		for _, check := range []string{CheckLeafFirst, CheckKey, CheckNames} {
			add(check, true, noChain)
		}
	} else {
		leaf = newLeaf(chain[0])
		addKey(add, chain, data[PrivateKeyKey])
		add(CheckNames, true, "", checkNames(leaf, names)...)
	}
	add(CheckCA, true, absent(data, CAKey), caProblems...)
	if noChain != "" {
		for _, check := range []string{CheckUsages, CheckChain, CheckDates, CheckExternalNames} {
			add(check, false, noChain)
		}
		return leaf, findings
	}
	add(CheckUsages, false, "", checkUsages(chain[0])...)
	var path []*x509.Certificate
	problems = nil
	if noCA == "" {
		path, problems = checkChain(chain, ca)
	}
	add(CheckChain, false, noCA, problems...)
	add(CheckDates, false, "", checkAllDates(chain[0], path, now)...)
	add(CheckExternalNames, false, "", checkExternal(leaf, names.External)...)
	return leaf, findings
}

// addKey tells a key of another certificate of the chain from one of none.
func addKey(add func(string, bool, string, ...settings.Problem), chain []*x509.Certificate, key []byte) {
	if len(key) == 0 {
		add(CheckLeafFirst, true, PrivateKeyKey)
		add(CheckKey, true, PrivateKeyKey)
		return
	}
	owner, problem := keyOwner(chain, key)
	switch {
	case problem != "":
		add(CheckLeafFirst, true, "the key of one of the certificates")
		add(CheckKey, true, "", invalid("%s", problem))
	case owner > 0:
		add(CheckLeafFirst, true, "", leafNotFirst(chain, owner))
		add(CheckKey, true, "")
	default:
		add(CheckLeafFirst, true, "")
		add(CheckKey, true, "")
	}
}

// readable parses the certificates under a key; without any it says what is
// missing.
func readable(data map[string][]byte, key string) (list []*x509.Certificate, missing string, problems []settings.Problem) {
	if missing := absent(data, key); missing != "" {
		return nil, missing, nil
	}
	list, err := parseCertificates(data[key])
	if err != nil {
		return nil, "a readable " + key, []settings.Problem{invalid("%s %v", key, err)}
	}
	return list, "", nil
}

func absent(data map[string][]byte, key string) string {
	if len(data[key]) == 0 {
		return key
	}
	return ""
}

// Roots are the certificates of a ca.crt, as what clients trust.
func Roots(ca []byte) (*x509.CertPool, error) {
	list, err := parseCertificates(ca)
	if err != nil {
		return nil, fmt.Errorf("%s %w", CAKey, err)
	}
	pool := x509.NewCertPool()
	for _, c := range list {
		pool.AddCert(c)
	}
	return pool, nil
}

// Served is a certificate that a server presented, in the form of a Secret's leaf.
func Served(c *x509.Certificate) Leaf { return newLeaf(c) }
