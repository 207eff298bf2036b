//go:build e2e && linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

// These tests own the machine's one cluster: they take down what runs, and
// leave nothing. Limits are about ten times what each wait takes.
const (
	upLimit   = 10 * time.Minute
	waitLimit = 2 * time.Minute
)

var (
	program string // the command under test
	tools   string // the directory that its assets command prints
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests start the local cluster and need root")
		return 1
	}
	dir, err := os.MkdirTemp("", "cluster-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "cluster")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the command: %v: %s\n", err, out)
		return 1
	}
	out, err := exec.Command(program, "assets").Output()
	if err != nil {
		fmt.Fprintf(os.Stderr, "make the assets: %v\n", err)
		return 1
	}
	tools = strings.TrimSpace(string(out))
	code := m.Run()
	if out, err := exec.Command(program, "down").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "take the cluster down: %v: %s\n", err, out)
		return 1
	}
	return code
}

// try runs the command and returns what it wrote to each stream.
func try(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	return o.String(), e.String(), err
}

func mustRun(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, err := try(t, args...)
	if err != nil {
		t.Fatalf("cluster %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout, stderr
}

func status(t *testing.T) clusterctl.Status {
	t.Helper()
	out, _ := mustRun(t, "status", "-o", "json")
	var st clusterctl.Status
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// background runs the command and hands out its progress lines.
func background(t *testing.T, env []string, name string, args ...string) (cmd *exec.Cmd, said chan string) {
	t.Helper()
	cmd = exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said = make(chan string, 100)
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			said <- lines.Text()
		}
	}()
	return cmd, said
}

// eventually waits until check returns no error.
func eventually(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(filepath.Join(tools, "kubectl"), append([]string{"--kubeconfig=" + layout.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), err
}

func mustKubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := kubectl(t, stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// netns lists the network namespaces that processes are in.
func netns(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if ns, err := os.Readlink(link); err == nil && ns != "" {
			found[ns] = true
		}
	}
	return found
}

// leftovers lists what is there of a cluster. It looks for itself, and uses
// none of the program's own ways to find things.
func leftovers(t *testing.T, namespacesBefore map[string]bool) []string {
	t.Helper()
	var left []string
	for _, pattern := range []string{
		"/sys/fs/cgroup/kubectl-valkey", "/sys/fs/cgroup/*/kubectl-valkey", "/sys/class/net/kv-br0", "/sys/class/net/kv-node*", layout.StateDir,
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, found...)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, layout.StateDir) {
			left = append(left, "mount "+line)
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		groups, _ := os.ReadFile(p + "/cgroup")
		cmdline, _ := os.ReadFile(p + "/cmdline")
		if strings.Contains(string(groups), ":/kubectl-valkey/") ||
			strings.Contains(string(cmdline), layout.StateDir+"/") || strings.Contains(string(cmdline), "/etc/kubectl-valkey/") {
			left = append(left, "process "+p+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	for ns := range netns(t) {
		if !namespacesBefore[ns] {
			left = append(left, "network namespace "+ns)
		}
	}
	return left
}
