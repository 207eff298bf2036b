// Package status implements "kubectl valkey status": it fetches what belongs to a
// cluster, draws a report from it, and shows that. Fetching is in pkg/plugin/inspect,
// the report in report.go, its text in render.go.
package status

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

const long = `Show how a cluster is: its health, shards, nodes and users, why a pod does not
start, what the manager is doing, and the latest events. Without a name, list the
clusters of the namespace.

It asks for nothing outside the namespace but the manager's Lease, which tells
whether a manager is at work, and with -o wide, json or yaml for the config, its
image and, before Kubernetes 1.35, zones.
Read access to the custom resources is enough; what else can't be read is left
out, and the permission that it needs is named.

With a name, the exit code is 0 when the cluster is healthy, that is, ready for
the spec as it is now, and 1 when it is not. The list always exits with 0.`

const example = `  # The clusters of the current namespace
  kubectl valkey status

  # Those of all namespaces
  kubectl valkey status -A

  # One cluster
  kubectl valkey status demo

  # Follow it until Ctrl-C
  kubectl valkey status demo -w

  # In another namespace and context, for a program
  kubectl valkey status demo -n team-a --context staging -o json`

// Options of "kubectl valkey status".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams
	clock   clock.Clock

	name          string
	namespace     string
	allNamespaces bool
	watch         bool
	output        string
	noHeaders     bool

	// client is made by Complete unless it is there.
	client client.WithWatch
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.Clock) *cobra.Command {
	return (&Options{access: access, flags: flags, streams: streams, clock: clk}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "status [NAME] [-A] [-w] [-o FORMAT]",
		DisableFlagsInUseLine: true,
		Short:                 "Show the health of clusters",
		Long:                  long,
		Example:               example,
		ValidArgsFunction:     o.access.CompleteCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(args); err != nil {
				return err
			}
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "If true, list the clusters of all namespaces.")
	fs.BoolVarP(&o.watch, "watch", "w", false, "If true, show the status again after each change, until Ctrl-C.")
	fs.StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml, wide).")
	fs.BoolVar(&o.noHeaders, "no-headers", false, "If true, list clusters without the line of column names.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{output.JSON, output.YAML, output.Wide}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Validate checks arguments and flags.
func (o *Options) Validate(args []string) error {
	switch {
	case len(args) > 1:
		return exit.Usagef("status takes one name, got %d: %q; without a name it lists all clusters", len(args), args)
	case len(args) == 1 && o.allNamespaces:
		return exit.Usagef("a name and --all-namespaces don't go together: name the namespace with -n, or leave the name out")
	case len(args) == 1 && o.noHeaders:
		return exit.Usagef("--no-headers is for the list of clusters: leave the name out")
	}
	if len(args) == 1 {
		o.name = args[0]
	}
	return exit.UsageError(output.CheckFormat(o.output, output.JSON, output.YAML, output.Wide))
}

// Complete finds out where to look.
func (o *Options) Complete() error {
	var err error
	if !o.allNamespaces {
		if o.namespace, err = o.access.Namespace(); err != nil {
			return err
		}
	}
	if o.client != nil {
		return nil
	}
	o.client, err = o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
	return err
}

// Run shows the status, once or again and again.
func (o *Options) Run(ctx context.Context) error {
	if o.watch {
		return o.follow(ctx)
	}
	seen, err := o.look(ctx, o.client)
	if err != nil {
		return err
	}
	if seen.empty() && o.data() == output.Text {
		return o.sayNone()
	}
	now := o.clock.Now()
	text, err := o.text(seen, now)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(o.streams.Out, text); err != nil {
		return err
	}
	if seen.snapshot == nil {
		return nil
	}
	return summarize(seen.snapshot.Cluster, now).failure()
}

// sight is what was read: one cluster with all that belongs to it, or several
// clusters alone.
type sight struct {
	snapshot *inspect.Snapshot
	clusters []v1alpha1.ValkeyCluster
}

func (s sight) empty() bool { return s.snapshot == nil && len(s.clusters) == 0 }

// look reads from r what the command is to show.
func (o *Options) look(ctx context.Context, r client.Reader) (sight, error) {
	if o.name == "" {
		var list v1alpha1.ValkeyClusterList
		err := kube.List(ctx, r, &list, "valkeyclusters", client.InNamespace(o.namespace))
		return sight{clusters: list.Items}, err
	}
	snapshot, err := inspect.Fetch(ctx, r, o.namespace, o.name)
	if err != nil {
		return sight{}, err
	}
	scope := inspect.Namespaced
	if o.output != output.Text {
		scope = inspect.ClusterWide
	}
	snapshot.Surroundings(ctx, r, scope)
	snapshot.ManagerSilent = inspect.ManagerSilence(ctx, o.client, o.clock)
	return sight{snapshot: snapshot}, ctx.Err()
}

// data is the format for programs, if one was asked for.
func (o *Options) data() string {
	if o.output == output.Wide {
		return output.Text
	}
	return o.output
}

// content is what was seen, as it looks now.
func (o *Options) content(s sight, now time.Time) content {
	if s.snapshot != nil {
		return newReport(s.snapshot, now)
	}
	list := List{Clusters: []Summary{}}
	for i := range s.clusters {
		list.Clusters = append(list.Clusters, summarize(&s.clusters[i], now))
	}
	return list
}

// text is the content in the format that was asked for.
func (o *Options) text(s sight, now time.Time) (string, error) {
	c := o.content(s, now)
	if o.data() != output.Text {
		return output.Data(o.output, c)
	}
	return c.text(renderer{
		palette: o.flags.Palette(o.streams.Out), now: now,
		wide: o.output == output.Wide, namespaces: o.allNamespaces, headers: !o.noHeaders,
	})
}

// sayNone goes to stderr, as kubectl does it: an empty list is empty.
func (o *Options) sayNone() error {
	_, err := fmt.Fprintln(o.streams.ErrOut, o.none())
	return err
}

func (o *Options) none() string {
	if o.allNamespaces {
		return "No clusters found in any namespace."
	}
	return fmt.Sprintf("No clusters found in namespace %s.", o.namespace)
}
