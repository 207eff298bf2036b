//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/addons"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cgroups"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/controlplane"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/hostnet"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/node"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/proc"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/state"
)

// change is what a command does to one node, under the lock.
type change func(ctx context.Context, n layout.Node, s *state.State, groups cgroups.Host) error

// Actions are the commands on a node, by name.
var Actions = map[string]change{
	"stop": stop, "start": start, "partition": partition, "heal": heal,
	"pause-kubelet": func(_ context.Context, n layout.Node, _ *state.State, g cgroups.Host) error {
		return signalKubelet(n, g, syscall.SIGSTOP)
	},
	"resume-kubelet": func(_ context.Context, n layout.Node, _ *state.State, g cgroups.Host) error {
		return signalKubelet(n, g, syscall.SIGCONT)
	},
	"pods-first": podsFirst,
}

// podsFirst gives a node's pods, for which the kubelet asks 1024 shares a core, eight
// times the processor of its other programs, and the node twice that of the control
// plane. On a machine of its own there is room for all; here a pod that starts would
// stop those that are measured. Under load it makes pods slow to come and go.
func podsFirst(_ context.Context, n layout.Node, _ *state.State, g cgroups.Host) error {
	return errors.Join(g.Weigh(n.Group(), 2048), g.Weigh(n.SystemGroup(), 256))
}

// OnNode runs one of Actions.
func OnNode(ctx context.Context, say Say, action, name string) (err error) {
	n, err := layout.NodeNamed(name)
	if err != nil {
		return err
	}
	lock, err := acquire(ctx, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	groups, err := cgroups.Detect()
	if err != nil {
		return err
	}
	s, err := running()
	if err != nil {
		return err
	}
	return Actions[action](ctx, n, &s, groups)
}

func running() (state.State, error) {
	s, ok, err := state.Load()
	if err == nil && (!ok || !s.Complete) {
		err = errors.New("the cluster isn't up; run the up command first")
	}
	return s, err
}

// stop kills the first process of the node, and with it the kernel kills all.
func stop(ctx context.Context, n layout.Node, s *state.State, groups cgroups.Host) error {
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	if id := s.Nodes[n.Name]; id.Alive() {
		if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill %s: %w", n.Name, err)
		}
	}
	if err := groups.Kill(ctx, n.Group()); err != nil {
		return err
	}
	if err := hostnet.Disconnect(ctx, n); err != nil {
		return err
	}
	return groups.Remove(ctx, n.Group())
}

// start starts a stopped node with its old identity and waits for it.
func start(ctx context.Context, n layout.Node, s *state.State, groups cgroups.Host) (err error) {
	if s.Nodes[n.Name].Alive() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	// Clears what a node that died by itself left.
	if err := stop(ctx, n, s, groups); err != nil {
		return err
	}
	leave, err := groups.Enter(layout.HostGroup)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	client, err := controlplane.Client()
	if err != nil {
		return err
	}
	since := time.Now()
	p, err := node.Start(ctx, nodeSpec(n, *s, groups), groups)
	if err != nil {
		return err
	}
	s.Nodes[n.Name] = p.ID
	if err := s.Save(); err != nil {
		return err
	}
	if err := awaitNode(ctx, client, n, since, []*proc.Process{p}); err != nil {
		return err
	}
	return addons.AwaitDNS(ctx, p.PID)
}

func partition(ctx context.Context, n layout.Node, s *state.State, _ cgroups.Host) error {
	if !s.Nodes[n.Name].Alive() {
		return fmt.Errorf("%s is stopped; start it first", n.Name)
	}
	return hostnet.Partition(ctx, n)
}

func heal(ctx context.Context, n layout.Node, s *state.State, _ cgroups.Host) error {
	if !s.Nodes[n.Name].Alive() {
		return fmt.Errorf("%s is stopped; start it first", n.Name)
	}
	return hostnet.Heal(ctx, n)
}

func signalKubelet(n layout.Node, groups cgroups.Host, signal syscall.Signal) error {
	pid, err := node.Program(n, groups, "kubelet")
	if err != nil {
		return err
	}
	if pid == 0 {
		return fmt.Errorf("%s has no kubelet; see %s", n.Name, layout.LogFile(n.Name))
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("signal the kubelet of %s: %w", n.Name, err)
	}
	return nil
}

// NodeCommand is a command in the namespaces of a node.
func NodeCommand(ctx context.Context, name string, argv []string) (*exec.Cmd, error) {
	n, err := layout.NodeNamed(name)
	if err != nil {
		return nil, err
	}
	s, err := running()
	if err != nil {
		return nil, err
	}
	id := s.Nodes[n.Name]
	if !id.Alive() {
		return nil, fmt.Errorf("%s is stopped; start it first", n.Name)
	}
	return node.Command(ctx, id.PID, argv...), nil
}

// Load imports a docker-archive file into every node.
func Load(ctx context.Context, say Say, archive string) (err error) {
	lock, err := acquire(ctx, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	s, err := running()
	if err != nil {
		return err
	}
	for _, n := range layout.Nodes() {
		if !s.Nodes[n.Name].Alive() {
			return fmt.Errorf("load %s: %s is stopped; start it first", archive, n.Name)
		}
		if err := node.Import(ctx, n, s.Nodes[n.Name].PID, archive); err != nil {
			return err
		}
	}
	return nil
}
