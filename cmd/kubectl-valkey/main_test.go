package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asPlugin makes the test binary behave as the program itself, so that what is
// tested is a whole process: its environment, terminal, signals and exit code.
const asPlugin = "TEST_AS_KUBECTL_VALKEY"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// result is what a process left behind.
type result struct {
	stdout, stderr string
	code           int
}

// command prepares the program in an environment of its own.
func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append([]string{asPlugin + "=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	cmd := command(t, env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return result{code: exitCode(t, cmd.Run()), stdout: stdout.String(), stderr: stderr.String()}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func kubeconfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantOneLine fails unless a failed run explained itself in one line on stderr,
// with an exit code that no signal could have caused.
func wantOneLine(t *testing.T, r result, code int) {
	t.Helper()
	if r.code != code || !strings.HasPrefix(r.stderr, "error: ") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("exit %d with %q on stderr, want %d with one line that begins with \"error: \"", r.code, r.stderr, code)
	}
}
