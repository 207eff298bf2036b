package verifytls

import (
	"fmt"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Results of a check.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// Checks beside those of the Secret, which pkg/certs names.
const (
	checkState       = "state"
	checkReady       = "tls-ready"
	checkSecret      = "secret"
	checkTrust       = "trust"
	checkNodes       = "nodes"
	checkReachable   = "reachable"
	checkHandshake   = "handshake"
	checkService     = "service-name"
	checkServed      = "served-leaf"
	checkAnswer      = "answer"
	checkNoClient    = "no-client-certificate"
	checkForeign     = "foreign-ca"
	checkPlaintext   = "no-plaintext"
	checkBus         = "bus"
	checkReplication = "replication"
	checkPath        = "client-path"
	checkExternal    = "external"
)

// secretPrefix goes before the checks of pkg/certs.
const secretPrefix = "secret-"

// Row is the outcome of one check. Its JSON form is stable.
type Row struct {
	// Check is the name of the check.
	Check string `json:"check"`
	// Where it was made: a node, a shard, an address outside; empty for the cluster.
	Where string `json:"where,omitempty"`
	// Result is passed, failed or skipped.
	Result string `json:"result"`
	// Reason for the result.
	Reason string `json:"reason,omitempty"`
	// Fix is what to do about it.
	Fix string `json:"fix,omitempty"`
}

// rows collects the checks of one place.
type rows struct {
	where string
	list  []Row
}

func (r *rows) add(check, result, reason, fix string) {
	r.list = append(r.list, Row{Check: check, Where: r.where, Result: result, Reason: output.Clean(reason), Fix: output.Clean(fix)})
}

func (r *rows) pass(check, reason string)      { r.add(check, Passed, reason, "") }
func (r *rows) fail(check, reason, fix string) { r.add(check, Failed, reason, fix) }
func (r *rows) skip(check, reason, fix string) { r.add(check, Skipped, reason, fix) }

// clusterRows are about what the manager says.
func clusterRows(c *v1alpha1.ValkeyCluster, statusCommand string) []Row {
	r := &rows{}
	switch c.Status.State {
	case v1alpha1.StateActive:
		r.pass(checkState, "the cluster is Active")
	case "":
		r.fail(checkState, "no manager has looked at the cluster yet", "find out whether the manager runs: kubectl get deployment valkey-operator -n valkey-operator")
	default:
		reason := fmt.Sprintf("the cluster is %s", c.Status.State)
		if c.Status.Message != "" {
			reason += ": " + c.Status.Message
		}
		r.fail(checkState, reason, "verify it again once it is Active: "+statusCommand)
	}
	for _, condition := range c.Status.Conditions {
		if condition.Type != v1alpha1.ConditionTLSReady {
			continue
		}
		if condition.Status == "True" {
			r.pass(checkReady, condition.Message)
		} else {
			r.fail(checkReady, condition.Reason+": "+condition.Message, "the message says what is wrong; during a rotation wait for it: --wait")
		}
		return r.list
	}
	r.skip(checkReady, "the manager has not said anything of the certificate yet", "")
	return r.list
}

// secretFixes say what to do about a check of the Secret, where the message doesn't.
var secretFixes = map[string]string{
	certs.CheckType:          "delete the Secret and create it anew: kubectl create secret generic NAME --type=kubernetes.io/tls --from-file=tls.crt --from-file=tls.key --from-file=ca.crt",
	certs.CheckKeys:          "put the missing key into the Secret",
	certs.CheckCertificate:   "put the certificate in PEM into tls.crt, the leaf first, intermediates after it",
	certs.CheckLeafFirst:     "move the leaf to the beginning of tls.crt",
	certs.CheckKey:           "put certificate and key that were issued together into tls.crt and tls.key",
	certs.CheckNames:         "issue the certificate for both names; kubectl valkey certificate NAME writes the request",
	certs.CheckCA:            "put the CA certificate in PEM into ca.crt",
	certs.CheckUsages:        "issue the certificate for server auth and client auth",
	certs.CheckChain:         "put the root that signed the certificate into ca.crt, and any intermediates after the leaf into tls.crt",
	certs.CheckDates:         "renew the certificate: write the new one into the same Secret",
	certs.CheckExternalNames: "issue the certificate for the external hostnames too; kubectl valkey certificate NAME writes the request",
}

// secretRows show the findings in the Secret. A certificate that expires soon still
// passes, with a word about it.
func secretRows(leaf certs.Leaf, findings []certs.Finding, external []string) []Row {
	r := &rows{}
	for _, f := range findings {
		check := secretPrefix + f.Check
		switch {
		case f.Missing != "":
			r.skip(check, "it needs "+f.Missing, "")
		case f.Check == certs.CheckExternalNames && len(external) == 0:
			r.skip(check, "the cluster has no external hostnames", "")
		case len(f.Problems) == 0:
			r.pass(check, sound(f.Check, leaf))
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
				r.pass(check, reason)
				continue
			}
			r.fail(check, reason, secretFixes[f.Check])
		}
	}
	return r.list
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
		return "valid until " + date(leaf.NotAfter)
	case certs.CheckExternalNames:
		return "every external hostname is covered"
	}
	return ""
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }
