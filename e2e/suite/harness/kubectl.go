//go:build e2e

package harness

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Result of a command.
type Result struct {
	// Args of kubectl, for messages.
	Args string
	// Stdout and Stderr as printed.
	Stdout, Stderr string
	// Code is the exit code, -1 if the command could not be run.
	Code int
}

// String shows the command with what it did, for messages.
func (r Result) String() string {
	return fmt.Sprintf("$ kubectl %s\n%s%s(exit code %d)", r.Args, r.Stdout, r.Stderr, r.Code)
}

// Command prepares kubectl, or with "valkey" as the first argument the plugin
// through it, as a person would call it.
func (e *Env) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	if cmd.Err != nil { // none in this process's own PATH
		cmd = exec.CommandContext(ctx, lookup(e.path, "kubectl"), args...)
	}
	cmd.Env = []string{"KUBECONFIG=" + e.Kubeconfig, "PATH=" + e.path, "HOME=" + e.home, "TERM=xterm"}
	return cmd
}

// RunKubectl runs kubectl with what it is to read.
func (e *Env) RunKubectl(ctx context.Context, stdin string, args ...string) Result {
	cmd := e.Command(ctx, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := Result{Args: strings.Join(args, " "), Stdout: stdout.String(), Stderr: stderr.String(), Code: ExitCode(err)}
	if r.Code == -1 {
		r.Stderr += err.Error() + "\n"
	}
	return r
}

// ExitCode of a command that ended with err, -1 if it did not exit by itself.
func ExitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}
