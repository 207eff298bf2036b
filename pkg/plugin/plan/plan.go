// Package plan implements "kubectl valkey plan": it takes what the manager last
// reported for a state of the planner, lets the planner run on an ideal world from
// there, and shows what it does. Nothing but the custom resources is needed.
package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

const long = `Show what the manager does next with a cluster, and why. With --shards, --replicas
or --config, show what that change would lead to, without making it: nodes that are
made, replaced and taken out, slots that move, failovers, settings that are applied
to running servers.

It is a forecast: it starts from what the manager last reported, and assumes that
all goes well from there: pods start, copies end, nobody changes anything. How long
it takes is not part of it. The manager keeps no plan, it decides anew at each step,
so what really happens follows what really is.

Read access to the custom resources is enough. Pods tell more, where they can be
read.`

const example = `  # What the manager is about to do
  kubectl valkey plan demo

  # What it would do for a fourth shard
  kubectl valkey plan demo --shards 4

  # What another config would change: which nodes are replaced, which settings are
  # applied live
  kubectl valkey plan demo --config large

  # Every single step, for a program
  kubectl valkey plan demo --shards 4 --replicas 2 -o json`

// Names of the flags that say what is to be changed.
const (
	flagShards   = "shards"
	flagReplicas = "replicas"
	flagConfig   = "config"
)

// Limits of the API.
const (
	maxShards   = 1000
	maxReplicas = 5
)

// Options of "kubectl valkey plan".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams
	clock   clock.PassiveClock

	name, namespace string
	change          change
	output          string

	// client is made by Complete unless it is there.
	client client.Reader
}

// change is what the flags ask for.
type change struct {
	shards, replicas     int32
	config               string
	byShards, byReplicas bool
	byConfig             bool
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.PassiveClock) *cobra.Command {
	return (&Options{access: access, flags: flags, streams: streams, clock: clk}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "plan NAME [--shards N] [--replicas N] [--config CONFIG]",
		DisableFlagsInUseLine: true,
		Short:                 "Show what the manager does next, or what a change would do",
		Long:                  long,
		Example:               example,
		ValidArgsFunction:     o.access.CompleteCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(args, cmd.Flags()); err != nil {
				return err
			}
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.Int32Var(&o.change.shards, flagShards, 0, "Show what this number of shards would lead to, 1 to 1000.")
	fs.Int32Var(&o.change.replicas, flagReplicas, 0, "Show what this number of replicas of each shard would lead to, 0 to 5.")
	fs.StringVar(&o.change.config, flagConfig, "", "Show what this ValkeyConfig would lead to.")
	fs.StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml, wide). wide lists every step.")
	for flag, complete := range map[string]cobra.CompletionFunc{
		flagConfig:   o.access.CompleteNames(&v1alpha1.ValkeyConfigList{}, false),
		flagShards:   cobra.NoFileCompletions,
		flagReplicas: cobra.NoFileCompletions,
		"output":     cobra.FixedCompletions([]string{output.JSON, output.YAML, output.Wide}, cobra.ShellCompDirectiveNoFileComp),
	} {
		// The flags were just defined, so they can be completed.
		_ = cmd.RegisterFlagCompletionFunc(flag, complete)
	}
	return cmd
}

// Validate checks arguments and flags.
func (o *Options) Validate(args []string, fs *pflag.FlagSet) error {
	if len(args) != 1 {
		return exit.Usagef("plan takes the name of one cluster, got %s; kubectl valkey status lists them", output.Arguments(args))
	}
	o.name = args[0]
	c := &o.change
	c.byShards, c.byReplicas, c.byConfig = fs.Changed(flagShards), fs.Changed(flagReplicas), fs.Changed(flagConfig)
	errs := []error{output.CheckFormat(o.output, output.JSON, output.YAML, output.Wide)}
	if c.byShards && (c.shards < 1 || c.shards > maxShards) {
		errs = append(errs, fmt.Errorf("--%s is %d; it must be from 1 to %d", flagShards, c.shards, maxShards))
	}
	if c.replicas < 0 || c.replicas > maxReplicas {
		errs = append(errs, fmt.Errorf("--%s is %d; it must be from 0 to %d", flagReplicas, c.replicas, maxReplicas))
	}
	if c.byConfig && c.config == "" {
		errs = append(errs, fmt.Errorf("--%s must not be empty", flagConfig))
	}
	return exit.UsageError(errors.Join(errs...))
}

// Complete finds out where to look.
func (o *Options) Complete() error {
	var err error
	if o.namespace, err = o.access.Namespace(); err != nil {
		return err
	}
	if o.client != nil {
		return nil
	}
	o.client, err = o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
	return err
}

// Run reads the cluster and shows the forecast.
func (o *Options) Run(ctx context.Context) error {
	s, err := inspect.Fetch(ctx, o.client, o.namespace, o.name)
	if err != nil {
		return err
	}
	if s.Cluster.DeletionTimestamp != nil {
		return fmt.Errorf("cluster %s in namespace %s is being deleted: ownership takes away all that belongs to it", o.name, o.namespace)
	}
	if s.Nodes.Err != nil {
		return fmt.Errorf("without its nodes there is no forecast for a cluster: %w", s.Nodes.Err)
	}
	menu, err := inspect.LoadCatalog(ctx, o.client)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w := newWish(s.Cluster, o.change)
	if err := w.resolve(menu, err); err != nil {
		return err
	}
	report, err := newReport(s, w, o.clock.Now())
	if err != nil {
		return err
	}
	text, err := o.text(report)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.streams.Out, text)
	return err
}

// text is the report in the format that was asked for.
func (o *Options) text(r *Report) (string, error) {
	if o.output == output.JSON || o.output == output.YAML {
		return output.Data(o.output, r)
	}
	return renderer{palette: o.flags.Palette(o.streams.Out), wide: o.output == output.Wide}.text(r)
}
