//go:build api

package harness

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// Result of a kubectl run.
type Result struct {
	// Stdout and Stderr as printed.
	Stdout, Stderr string
	// Err is nil if kubectl exited with 0.
	Err error
}

// Kubectl runs kubectl as a cluster administrator.
func (s *Server) Kubectl(t testing.TB, args ...string) Result {
	t.Helper()
	return s.run(t.Context(), args...)
}

func (s *Server) run(ctx context.Context, args ...string) Result {
	cmd := exec.CommandContext(ctx, s.kubectl, args...)
	// A config and a cache of its own: what the user has must not matter.
	cmd.Env = []string{"KUBECONFIG=" + s.kubeconfig, "HOME=" + s.dir, "PATH=/usr/bin:/bin"}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Err: err}
}

// MustKubectl fails the test if kubectl fails, and returns what it printed.
func (s *Server) MustKubectl(t testing.TB, args ...string) string {
	t.Helper()
	r := s.Kubectl(t, args...)
	if r.Err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), r.Err, r.Stdout, r.Stderr)
	}
	return r.Stdout
}
