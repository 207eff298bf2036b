package cluster

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// S-05
func TestTheManagersUserMayRunWhatIsSentAndNoMore(t *testing.T) {
	granted := acl.OperatorCommands()
	slices.Sort(granted)
	if diff := cmp.Diff(valkey.CommandsSent(), granted); diff != "" {
		t.Errorf("commands (-sent +granted to %s):\n%s", acl.OperatorUser, diff)
	}
}
