//go:build e2e

package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// On a terminal `status -w` follows the cluster and `create --wait` draws one live
// line; Ctrl-C ends both with 130, and the cluster goes on.
func TestTerminalFollowsUntilInterrupted(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 2)
	label := "kubectl-valkey-e2e/" + s.Name
	create := s.OnTerminal("valkey", "create", "c", "--config", harness.ConfigName, "--shards", "1", "--replicas", "0",
		"--node-selector", label+"=here", "--wait")
	create.WaitFor(t, "Unschedulable", time.Minute)
	create.Type(t, "\x03")
	if code := create.Wait(t, 10*time.Second); code != 130 {
		t.Errorf("an interrupted create --wait ended with %d: %q", code, create.Shown())
	}
	shown := create.Shown()
	if err := harness.Contains(shown, "created", "\r", "goes on being created", "kubectl valkey status c -w"); err != nil {
		t.Error(err)
	}

	follow := s.OnTerminal("valkey", "status", "c", "-w")
	follow.WaitFor(t, "Unschedulable", 30*time.Second)
	labelNodes(t, s, label)
	follow.WaitFor(t, "healthy", harness.ActiveWithin)
	follow.WaitFor(t, "1/1", 30*time.Second)
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ReplicasPerShard = 1 })
	follow.WaitFor(t, "2/2", harness.ActiveWithin)
	follow.Type(t, "\x03")
	if code := follow.Wait(t, 10*time.Second); code != 130 {
		t.Errorf("an interrupted status -w ended with %d: %q", code, follow.Shown())
	}
	if !strings.Contains(follow.Shown(), "\x1b[") {
		t.Error("status -w does not draw over on a terminal")
	}
}
