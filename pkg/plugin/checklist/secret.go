package checklist

import (
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
)

// SecretPrefix goes before the names of the checks of pkg/certs.
const SecretPrefix = "secret-"

// Fix is what to do when a check of pkg/certs fails.
func Fix(check string) string { return secretFixes[check] }

// secretFixes say what to do about a check of the Secret, where the message doesn't.
var secretFixes = map[string]string{
	certs.CheckType:          "delete the Secret and create it anew: kubectl create secret generic NAME --type=kubernetes.io/tls --from-file=tls.crt --from-file=tls.key --from-file=ca.crt",
	certs.CheckKeys:          "put the missing key into the Secret",
	certs.CheckCertificate:   "put the certificate in PEM into tls.crt, the leaf first, intermediates after it",
	certs.CheckLeafFirst:     "move the leaf to the beginning of tls.crt",
	certs.CheckKey:           "put certificate and key that were issued together into tls.crt and tls.key",
	certs.CheckNames:         "issue the certificate for both names; kubectl valkey certificate NAME writes the request",
	certs.CheckCA:            "put the CA certificate in PEM into ca.crt",
	certs.CheckUsages:        "issue the certificate for server auth and client auth, with key usage digital signature",
	certs.CheckChain:         "put the root that signed the certificate into ca.crt, and any intermediates after the leaf into tls.crt",
	certs.CheckDates:         "renew the certificate: write the new one into the same Secret",
	certs.CheckExternalNames: "issue the certificate for the external hostnames too; kubectl valkey certificate NAME writes the request",
}

// OfSecret shows the findings in the Secret. A certificate that expires soon still
// passes, with a word about it.
func OfSecret(leaf certs.Leaf, findings []certs.Finding, external []string) []Row {
	r := &Rows{}
	for _, f := range findings {
		check := SecretPrefix + f.Check
		switch {
		case f.Missing != "":
			r.Skip(check, "it needs "+f.Missing, "")
		case f.Check == certs.CheckExternalNames && len(external) == 0:
			r.Skip(check, "the cluster has no external hostnames", "")
		case len(f.Problems) == 0:
			r.Pass(check, sound(f.Check, leaf))
		default:
			reason, only := "", true
			for i, p := range f.Problems {
				if i > 0 {
					reason += "; "
				}
				reason += p.Message
				only = only && p.Reason == v1alpha1.ReasonTLSExpiring
			}
			if only {
				r.Pass(check, reason)
				continue
			}
			r.Fail(check, reason, secretFixes[f.Check])
		}
	}
	return r.List
}

// sound says what a check has found to be right.
func sound(check string, leaf certs.Leaf) string {
	switch check {
	case certs.CheckType:
		return "kubernetes.io/tls"
	case certs.CheckKeys:
		return "tls.crt, tls.key and ca.crt are there"
	case certs.CheckCertificate:
		return leaf.Subject
	case certs.CheckLeafFirst:
		return "tls.crt begins with the leaf"
	case certs.CheckKey:
		return "tls.key belongs to the leaf"
	case certs.CheckNames:
		return "the Service's name and the pods' wildcard are covered"
	case certs.CheckCA:
		return "ca.crt holds certificates"
	case certs.CheckUsages:
		return "usable by servers and clients"
	case certs.CheckChain:
		return "signed by a CA in ca.crt"
	case certs.CheckDates:
		return "valid until " + Date(leaf.NotAfter)
	case certs.CheckExternalNames:
		return "every external hostname is covered"
	}
	return ""
}

// Date is how rows write a time.
func Date(t time.Time) string { return t.UTC().Format(time.RFC3339) }
