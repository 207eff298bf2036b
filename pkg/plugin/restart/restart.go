// Package restart implements "kubectl valkey restart".
package restart

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

const long = `Replace every node of a cluster by a new one, as a change of the image does: one
shard at a time, each new node in sync before an old one goes, one failover a
shard. No key is lost, also without replicas; clients see redirects.

Nodes that are newer than the request stay. Ctrl-C ends only the waiting. To take
the request back, so that what was not replaced yet stays:
kubectl annotate valkeycluster NAME valkey.gomomento.com/request-restart-

Exit codes: 0 asked for (with --wait: done), 1 refused or failed, 2 wrong usage,
124 not done in time, 130 interrupted.`

const example = `  # Replace all nodes
  kubectl valkey restart demo

  # See first what that means, and then how it proceeds
  kubectl valkey restart demo --dry-run=server
  kubectl valkey restart demo --wait`

const timeout = time.Hour

// Options of "kubectl valkey restart".
type Options struct {
	operation.Options
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return (&Options{Options: operation.New(access, flags, streams, clk)}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := o.Command(&cobra.Command{
		Use:     "restart NAME [--wait]",
		Short:   "Replace all nodes, one after the other",
		Long:    long,
		Example: example,
	}, nil, o.run)
	o.AddWaitFlags(cmd.Flags(), false, timeout)
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	s, err := o.Look(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(o.Served(s.Cluster), o.Unasked(s.Cluster, request.Restart)); err != nil {
		return err
	}
	if err := o.Note("%s", announcement(len(s.Cluster.Status.Nodes), len(s.Cluster.Status.Shards))); err != nil {
		return err
	}
	moment, err := o.ServerTime(ctx, s.Cluster, request.Restart)
	if err != nil {
		return err
	}
	id, err := o.NewID()
	if err != nil {
		return err
	}
	return o.Ask(ctx, s.Cluster, request.NewRestart(id, moment))
}

// announcement says what a restart does to so many nodes and shards.
func announcement(nodes, shards int) string {
	if nodes == 1 {
		return "the only node is replaced, with a failover to its successor"
	}
	return fmt.Sprintf("%s are replaced one after the other, with a failover in each of %s", output.Plural(nodes, "node"), output.Plural(shards, "shard"))
}
