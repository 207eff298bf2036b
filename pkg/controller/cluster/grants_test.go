package cluster

import (
	"slices"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// S-05
func TestEveryCommandThatTheManagerSendsIsGrantedToItsUser(t *testing.T) {
	granted := acl.OperatorCommands()
	for _, sent := range valkey.CommandsSent() {
		if !slices.Contains(granted, sent) {
			t.Errorf("%s is sent as %s, which may not run it", sent, acl.OperatorUser)
		}
	}
}
