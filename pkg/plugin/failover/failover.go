// Package failover implements "kubectl valkey failover".
package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

const long = `Make a replica the primary of its shard, without losing a write: the primary stops
taking writes, the replica catches up and takes over. Clients see a redirect.

The manager does it, once the cluster is as wished: it never begins a failover
while something else is being repaired or changed. Without --to it chooses the
replica that is in sync and furthest ahead.

Exit codes: 0 done (with --wait=false: asked for), 1 refused or failed, 2 wrong
usage, 124 not done in time, 130 interrupted.`

const example = `  # Shard 1 gets another primary
  kubectl valkey failover demo --shard 1

  # That one
  kubectl valkey failover demo --shard 1 --to demo-3fa2c

  # Only check whether it could be done
  kubectl valkey failover demo --shard 1 --dry-run=server`

// timeout is far above the two seconds that a failover takes: before it the
// manager may have something to finish.
const timeout = 2 * time.Minute

// Options of "kubectl valkey failover".
type Options struct {
	operation.Options

	shard int32
	to    string
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return (&Options{Options: operation.New(access, flags, streams, clk)}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := o.Command(&cobra.Command{
		Use:     "failover NAME --shard N [--to NODE]",
		Short:   "Make a replica the primary of its shard",
		Long:    long,
		Example: example,
	}, o.validate, o.run)
	fs := cmd.Flags()
	fs.Int32Var(&o.shard, "shard", 0, "Index of the shard, from 0 (required).")
	fs.StringVar(&o.to, "to", "", "Node that is to be the primary. Default: the best replica.")
	o.AddWaitFlags(fs, true, timeout)
	// The flags were just defined, so they can be completed.
	_ = cmd.RegisterFlagCompletionFunc("shard", o.Access.CompleteShards)
	_ = cmd.RegisterFlagCompletionFunc("to", o.completeNode)
	return cmd
}

// completeNode offers the nodes of the cluster.
func (o *Options) completeNode(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	nodes := o.Access.CompleteNames(&v1alpha1.ValkeyNodeList{}, true, client.MatchingLabels{v1alpha1.LabelInstance: args[0]})
	return nodes(cmd, args, toComplete)
}

func (o *Options) validate(fs *pflag.FlagSet) error {
	switch {
	case !fs.Changed("shard"):
		return errors.New("--shard must be given; kubectl valkey status " + o.Name + " lists the shards")
	case o.shard < 0:
		return fmt.Errorf("--shard is %d; it must be 0 or more", o.shard)
	}
	return nil
}

func (o *Options) run(ctx context.Context) error {
	s, err := o.Look(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(o.Served(s.Cluster), o.Unasked(s.Cluster, request.Failover)); err != nil {
		return err
	}
	if err := o.check(s); err != nil {
		return err
	}
	if next := inspect.NextAction(s.Cluster); next != "" {
		if err := o.Note("the failover waits until the manager is done with: %s", next); err != nil {
			return err
		}
	}
	id, err := o.NewID()
	if err != nil {
		return err
	}
	return o.Ask(ctx, s.Cluster, request.NewFailover(id, o.shard, o.to))
}

// check finds out whether the shard has a replica that could take over. What can't
// be read is left to the manager.
func (o *Options) check(s *inspect.Snapshot) error {
	shard, err := o.find(s.Cluster)
	if err != nil {
		return err
	}
	switch {
	case shard.Primary == "":
		return fmt.Errorf("shard %d has no primary at the moment; the manager looks after that by itself: %s", o.shard, o.StatusCommand())
	case o.to == shard.Primary:
		return fmt.Errorf("node %s is the primary of shard %d already", o.to, o.shard)
	case len(shard.Replicas) == 0:
		return fmt.Errorf("shard %d has no replica that could take over", o.shard)
	case o.to != "" && !slices.Contains(shard.Replicas, o.to):
		return fmt.Errorf("node %s is no replica of shard %d; its replicas: %s", o.to, o.shard, strings.Join(shard.Replicas, ", "))
	}
	if s.Nodes.Err != nil {
		return o.Note("whether a replica is in sync was not checked: %v", s.Nodes.Err)
	}
	var inSync []string
	for i := range s.Nodes.Items {
		if n := &s.Nodes.Items[i]; n.Status.Ready && slices.Contains(shard.Replicas, n.Name) {
			inSync = append(inSync, n.Name)
		}
	}
	switch {
	case len(inSync) == 0:
		return fmt.Errorf("no replica of shard %d is in sync, so none can take over: %s", o.shard, o.StatusCommand())
	case o.to != "" && !slices.Contains(inSync, o.to):
		return fmt.Errorf("replica %s is not in sync; in sync: %s", o.to, strings.Join(inSync, ", "))
	}
	return nil
}

func (o *Options) find(c *v1alpha1.ValkeyCluster) (v1alpha1.ShardStatus, error) {
	var known []string
	for _, shard := range c.Status.Shards {
		if shard.Index == o.shard {
			return shard, nil
		}
		known = append(known, strconv.Itoa(int(shard.Index)))
	}
	return v1alpha1.ShardStatus{}, fmt.Errorf("cluster %s has no shard %d; its shards: %s", o.Name, o.shard, strings.Join(known, ", "))
}
