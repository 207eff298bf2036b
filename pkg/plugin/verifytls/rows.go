package verifytls

import (
	"fmt"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/checklist"
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

// clusterRows are about what the manager says.
func clusterRows(c *v1alpha1.ValkeyCluster, statusCommand string) []checklist.Row {
	r := &checklist.Rows{}
	switch c.Status.State {
	case v1alpha1.StateActive:
		r.Pass(checkState, "the cluster is Active")
	case "":
		r.Fail(checkState, "no manager has looked at the cluster yet", "find out whether the manager runs: kubectl get deployment valkey-operator -n valkey-operator")
	default:
		reason := fmt.Sprintf("the cluster is %s", c.Status.State)
		if c.Status.Message != "" {
			reason += ": " + c.Status.Message
		}
		r.Fail(checkState, reason, "verify it again once it is Active: "+statusCommand)
	}
	for _, condition := range c.Status.Conditions {
		if condition.Type != v1alpha1.ConditionTLSReady {
			continue
		}
		if condition.Status == "True" {
			r.Pass(checkReady, condition.Message)
		} else {
			r.Fail(checkReady, condition.Reason+": "+condition.Message, "the message says what is wrong; during a rotation wait for it: --wait")
		}
		return r.List
	}
	r.Skip(checkReady, "the manager has not said anything of the certificate yet", "")
	return r.List
}
