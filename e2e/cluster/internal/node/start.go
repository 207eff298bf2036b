//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cgroups"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/hostnet"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/proc"
)

// InitCommand is the hidden subcommand of this program that runs Init.
const InitCommand = "node-init"

// ready is what the first process waits for on its standard input before it
// does anything: by then it is in its cgroup and its cable is there.
const ready = "ready\n"

// namespaces are a node's own. The user namespace stays the host's: containers
// need real root.
const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// PrepareDir makes the node's directories. What is in them survives a stop and
// a start: the node keeps its identity and its images.
func PrepareDir(n layout.Node) error {
	for _, dir := range []string{"conf", "upper", "work", "root", "containerd", "kubelet"} {
		if err := os.MkdirAll(filepath.Join(n.Dir(), dir), 0o755); err != nil {
			return fmt.Errorf("make the directories of %s: %w", n.Name, err)
		}
	}
	return nil
}

// Start starts the node and returns its first process, without waiting for the
// node to be Ready.
func Start(ctx context.Context, spec Spec, host cgroups.Host) (p *proc.Process, err error) {
	n := spec.Node
	if err := host.Create(n.SystemGroup()); err != nil {
		return nil, err
	}
	if err := spec.write(); err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", n.Name, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	cmd := exec.Command("/proc/self/exe", InitCommand, specFile(n))
	cmd.Stdin = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	p, err = proc.Start(n.Name, cmd, layout.LogFile(n.Name))
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, err
	}
	if err := host.Join(n.SystemGroup(), p.PID); err != nil {
		return nil, err
	}
	if err := hostnet.Connect(ctx, n, p.PID); err != nil {
		return nil, err
	}
	if _, err := out.WriteString(ready); err != nil {
		return nil, fmt.Errorf("start %s: %w; see %s", n.Name, err, layout.LogFile(n.Name))
	}
	return p, nil
}

// Command is a command that runs in the namespaces of the node whose first
// process is pid.
func Command(ctx context.Context, pid int, argv ...string) *exec.Cmd {
	args := []string{"--target", strconv.Itoa(pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--", "env", "PATH=" + path()}
	return exec.CommandContext(ctx, "nsenter", append(args, argv...)...)
}

// Import loads a docker-archive file into the node's container runtime.
func Import(ctx context.Context, n layout.Node, pid int, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("open the image: %w", err)
	}
	defer file.Close()
	cmd := Command(ctx, pid, "ctr", "-n", "k8s.io", "images", "import", "-")
	cmd.Stdin = file
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("load %s into %s: %w: %s", archive, n.Name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Program finds a program of the node by name among the members of the node's
// system group; pid is 0 when it doesn't run.
func Program(n layout.Node, host cgroups.Host, name string) (pid int, err error) {
	pids, err := host.Processes(n.SystemGroup())
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(pids, func(pid int) bool {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			return false
		}
		argv0, _, _ := strings.Cut(string(cmdline), "\x00")
		return filepath.Base(argv0) == name
	})
	if i < 0 {
		return 0, nil
	}
	return pids[i], nil
}

// Programs are the names that Program finds.
func Programs() []string { return []string{"containerd", "kubelet", "kube-proxy", "kube-router"} }

// Stopped reports whether the process is halted by SIGSTOP.
func Stopped(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), "\nState:\tT")
}
