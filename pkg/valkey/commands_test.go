package valkey

import (
	"slices"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
)

func TestTheManagersUserMayRunEveryCommandThatIsSent(t *testing.T) {
	granted := acl.OperatorCommands()
	for _, name := range CommandsSent() {
		if !slices.Contains(granted, name) {
			t.Errorf("S-05: %s is sent and not granted to %s", name, acl.OperatorUser)
		}
	}
	if !slices.Contains(CommandsSent(), "cluster|meet") || !slices.IsSorted(CommandsSent()) {
		t.Errorf("commands sent: %v", CommandsSent())
	}
}
