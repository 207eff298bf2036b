package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// ExpiryWarning is how long before its end a certificate is warned about.
const ExpiryWarning = 14 * 24 * time.Hour

func warning(reason, format string, args ...any) settings.Problem {
	return settings.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func warn(chain, ca []*x509.Certificate, names Names, now time.Time) []settings.Problem {
	warnings := checkUsages(chain[0])
	path, problems := checkChain(chain, ca)
	warnings = append(warnings, problems...)
	warnings = append(warnings, checkAllDates(chain[0], path, now)...)
	return append(warnings, checkExternal(newLeaf(chain[0]), names.External)...)
}

// checkUsages wants a leaf that may serve and dial. Nodes are clients of one
// another, and the bus asks for a client certificate whatever tls-auth-clients
// says. A key usage, where there is one, has to allow signatures or key agreement:
// without them a peer takes the certificate for that of no client.
func checkUsages(leaf *x509.Certificate) []settings.Problem {
	if leaf.KeyUsage != 0 && leaf.KeyUsage&(x509.KeyUsageDigitalSignature|x509.KeyUsageKeyAgreement) == 0 {
		return append([]settings.Problem{warning(v1alpha1.ReasonTLSUsageMissing,
			"the certificate's key usage lacks digital signature: nodes dial one another with it and refuse each other, so they never form a cluster; issue it with digital signature and key encipherment")},
			checkExtendedUsages(leaf)...)
	}
	return checkExtendedUsages(leaf)
}

func checkExtendedUsages(leaf *x509.Certificate) []settings.Problem {
	has := func(usage x509.ExtKeyUsage) bool { return slices.Contains(leaf.ExtKeyUsage, usage) }
	if has(x509.ExtKeyUsageAny) || len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) == 0 {
		return nil
	}
	var warnings []settings.Problem
	if !has(x509.ExtKeyUsageClientAuth) {
		warnings = append(warnings, warning(v1alpha1.ReasonTLSUsageMissing,
			"the certificate's extended key usage lacks client auth: nodes dial one another with it, so they never form a cluster; issue it with server auth and client auth"))
	}
	if !has(x509.ExtKeyUsageServerAuth) {
		warnings = append(warnings, warning(v1alpha1.ReasonTLSUsageMissing,
			"the certificate's extended key usage lacks server auth: clients refuse it; issue it with server auth and client auth"))
	}
	return warnings
}

// checkChain finds the way from the leaf to a root in ca.crt, whatever the dates,
// which are another matter. Like the server it wants a root that is signed by
// itself: an intermediate in ca.crt is no anchor for it.
func checkChain(chain, ca []*x509.Certificate) ([]*x509.Certificate, []settings.Problem) {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range ca {
		if isSelfIssued(c) {
			roots.AddCert(c)
		} else {
			intermediates.AddCert(c)
		}
	}
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	var paths [][]*x509.Certificate
	for _, at := range instants(chain, ca) {
		found, err := chain[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: intermediates, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		})
		if err == nil {
			paths = append(paths, found...)
		}
	}
	strong := slices.DeleteFunc(slices.Clone(paths), func(path []*x509.Certificate) bool {
		return slices.ContainsFunc(path[1:], func(c *x509.Certificate) bool { return weakBits(c) > 0 })
	})
	if len(strong) > 0 {
		return slices.MaxFunc(strong, func(a, b []*x509.Certificate) int { return end(a).Compare(end(b)) }), nil
	}
	return nil, []settings.Problem{warning(v1alpha1.ReasonTLSChainBroken, "%s", brokenChain(chain, ca, paths))}
}

// brokenChain says why nodes refuse the certificate, and what to do. Weak are the
// paths that lead to a root all the same.
func brokenChain(chain, ca []*x509.Certificate, weak [][]*x509.Certificate) string {
	if len(weak) > 0 {
		i := slices.IndexFunc(weak[0], func(c *x509.Certificate) bool { return weakBits(c) > 0 })
		return fmt.Sprintf("the CA certificate %q has an RSA key of %d bits: nodes refuse what is signed with less than %d; use a CA with a longer key",
			weak[0][i].Subject, weakBits(weak[0][i]), minRSABits)
	}
	if obsoleteSignature(chain[0]) {
		return fmt.Sprintf("the certificate is signed with %s, which nobody accepts any more: issue it with SHA-256", chain[0].SignatureAlgorithm)
	}
	text := "the certificate is not signed by any CA in " + CAKey
	if !slices.ContainsFunc(ca, isSelfIssued) {
		text = CAKey + " holds no root certificate, which nodes need to verify each other"
	}
	return fmt.Sprintf("%s (issuer of the certificate: %s): put the root into %s and any intermediates after the leaf into %s",
		text, chain[0].Issuer, CAKey, CertificateKey)
}

func isSelfIssued(c *x509.Certificate) bool { return bytes.Equal(c.RawSubject, c.RawIssuer) }

// instants are the times at which validities begin and end: if there is any moment
// at which a path is valid as a whole, one of them is such a moment.
func instants(lists ...[]*x509.Certificate) []time.Time {
	var times []time.Time
	for _, list := range lists {
		for _, c := range list {
			times = append(times, c.NotBefore, c.NotAfter)
		}
	}
	return times
}

// end is when the first certificate of a path expires.
func end(path []*x509.Certificate) time.Time {
	return slices.MinFunc(path, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// checkAllDates looks at the leaf and at the CA certificates that verify it.
func checkAllDates(leaf *x509.Certificate, path []*x509.Certificate, now time.Time) []settings.Problem {
	problems := checkDates("the certificate", leaf, now)
	for _, c := range path[min(1, len(path)):] {
		problems = append(problems, checkDates(fmt.Sprintf("the CA certificate %q", c.Subject), c, now)...)
	}
	return problems
}

func checkDates(what string, c *x509.Certificate, now time.Time) []settings.Problem {
	date := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch left := c.NotAfter.Sub(now); {
	case left < 0:
		return []settings.Problem{warning(v1alpha1.ReasonTLSExpired, "%s expired on %s: clients that verify it can't connect; renew it", what, date(c.NotAfter))}
	case now.Before(c.NotBefore):
		return []settings.Problem{warning(v1alpha1.ReasonTLSNotYetValid, "%s is valid only from %s on: clients that verify it can't connect before", what, date(c.NotBefore))}
	case left < ExpiryWarning:
		return []settings.Problem{warning(v1alpha1.ReasonTLSExpiring, "%s expires on %s, in %d days: renew it", what, date(c.NotAfter), int(left/(24*time.Hour)))}
	default:
		return nil
	}
}

func checkExternal(leaf Leaf, external []string) []settings.Problem {
	var missing []string
	for _, name := range external {
		if !leaf.Covers(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []settings.Problem{warning(v1alpha1.ReasonTLSNameNotCovered,
		"the certificate doesn't cover the external names %s: clients that are given them can't verify it; issue it with these names too", settings.List(missing))}
}
