//go:build api

package valkey

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey/valkeytest"
)

// livenessAgainst runs the pod's liveness command, valkey-cli and all, against
// another address than the pod's own.
func livenessAgainst(ctx context.Context, t *testing.T, address string) error {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	pod := objects.Pod(&v1alpha1.ValkeyNode{}, objects.PodInput{})
	command := slices.Clone(pod.Spec.Containers[0].LivenessProbe.Exec.Command)
	for i, word := range command {
		switch word {
		case "valkey-cli":
			command[i] = filepath.Join(filepath.Dir(valkeytest.Program(t, "valkey-server")), word)
		case "127.0.0.1":
			command[i] = host
		case "6379":
			command[i] = port
		}
	}
	return exec.CommandContext(ctx, command[0], command[1:]...).Run()
}

func TestAnyReplyIsAliveAndSilenceIsNot(t *testing.T) {
	for _, reply := range []string{
		"+PONG\r\n",
		"-NOAUTH Authentication required.\r\n",
		"-LOADING Valkey is loading the dataset in memory\r\n",
		"-BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
		"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
		"-NOPERM User default has no permissions to run the 'ping' command\r\n",
	} {
		server := serve(t, nil, func(string) string { return reply })
		if err := livenessAgainst(t.Context(), t, server.address()); err != nil {
			t.Errorf("O-05: %q: %v", reply, err)
		}
	}
	t.Run("a real server whose default user is off", func(t *testing.T) {
		if err := livenessAgainst(t.Context(), t, startServer(t, 1).target().Address); err != nil {
			t.Error(err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		if err := livenessAgainst(t.Context(), t, valkeytest.Loopback(250)+":6379"); err == nil {
			t.Error("O-05: alive")
		}
	})
	t.Run("a server that hangs", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		err := livenessAgainst(ctx, t, serve(t, nil, silent).address())
		if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("O-05: %v", err)
		}
	})
}

// V-01: an empty address would freeze another one for good.
func TestAServerWithoutAPodIPRefusesToStart(t *testing.T) {
	pod := objects.Pod(&v1alpha1.ValkeyNode{}, objects.PodInput{})
	announce := strings.ReplaceAll(pod.Spec.Containers[0].Args[1], "$(POD_IP)", "")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, valkeytest.Program(t, "valkey-server"), "--port", "0", announce)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil || !strings.Contains(string(out), "wrong number of arguments") {
		t.Errorf("%v:\n%s", err, out)
	}
}
