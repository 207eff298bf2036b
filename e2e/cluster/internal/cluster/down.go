//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cgroups"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/host"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/hostnet"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/state"
)

// cleanLimit bounds a tear-down; it takes one or two seconds.
const cleanLimit = time.Minute

// Down takes down whatever there is of the cluster.
func Down(ctx context.Context, say Say) (err error) {
	lock, err := acquire(ctx, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	groups, err := cgroups.Detect()
	if err != nil {
		return err
	}
	if !anything(groups) {
		say("nothing of the cluster is running")
		return nil
	}
	if err := cleanUp(ctx, groups); err != nil {
		return err
	}
	say("the cluster is down; its logs are in %s", layout.LogDir)
	return nil
}

func anything(groups cgroups.Host) bool {
	_, err := os.Stat(layout.StateDir)
	return err == nil || groups.Exists(layout.Name) || hostnet.Exists()
}

// cleanUp removes everything. The caller is in none of the program's cgroups.
func cleanUp(ctx context.Context, groups cgroups.Host) error {
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	if err := dismantle(ctx, groups); err != nil {
		return err
	}
	return groups.Remove(ctx, layout.Name)
}

// dismantle is cleanUp but for the cgroup of the control plane, which the caller may
// be in. It goes by what the kernel knows - members of cgroups, names of links,
// mount points - and needs no state file for it.
func dismantle(ctx context.Context, groups cgroups.Host) error {
	s, ok, stateErr := state.Load()
	if stateErr != nil {
		return stateErr
	}
	// First of all, so that nothing starts new processes or mounts.
	if err := groups.Kill(ctx, layout.Name); err != nil {
		return err
	}
	if err := hostnet.RemoveAll(ctx); err != nil {
		return err
	}
	for _, n := range layout.Nodes() {
		if err := groups.Remove(ctx, n.Group()); err != nil {
			return err
		}
	}
	if ok {
		if err := host.RestoreSysctls(s.Sysctls); err != nil {
			return err
		}
	}
	if err := host.UnmountBelow(layout.StateDir); err != nil {
		return err
	}
	if err := os.RemoveAll(layout.StateDir); err != nil {
		return fmt.Errorf("remove the cluster's files: %w", err)
	}
	return nil
}
