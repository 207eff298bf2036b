//go:build linux

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cgroups"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/state"
)

// healthy reports whether the cluster of these parts runs and is well, and
// says why not if there is one.
func healthy(ctx context.Context, p parts, groups cgroups.Host, say Say) bool {
	s, ok, err := state.Load()
	if err != nil || !ok {
		return false
	}
	key, err := p.key()
	if err != nil {
		say("%v", err)
		return false
	}
	if s.Key != key {
		say("the running cluster is made of other parts; replacing it")
		return false
	}
	if !s.Complete {
		say("an earlier start was interrupted; cleaning up and starting again")
		return false
	}
	if err := recovers(ctx, groups, s); err != nil {
		say("the running cluster isn't well (%v); cleaning up and starting again", err)
		return false
	}
	say("the cluster is already up and healthy")
	return true
}

// patience is how long a cluster of which nothing is dead may take to answer:
// a busy machine is no reason to throw it away.
const patience = 30 * time.Second

// recovers waits until the cluster is well, and gives up at once when something
// is dead, cut off or halted.
func recovers(ctx context.Context, groups cgroups.Host, s state.State) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		st, err := inspect(ctx, groups, s)
		if err == nil && st.Health == clusterctl.StateHealthy {
			return nil
		}
		if err == nil {
			err = errors.New(strings.Join(st.Problems, ", "))
		}
		if broken(st) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// broken tells what doesn't mend by itself.
func broken(st clusterctl.Status) bool {
	dead := func(p clusterctl.Process) bool { return !p.Running }
	return slices.ContainsFunc(st.ControlPlane, dead) || slices.ContainsFunc(st.Nodes, func(n clusterctl.Node) bool {
		return !n.Running || n.Partitioned || n.KubeletPaused || slices.ContainsFunc(n.Processes, dead)
	})
}
