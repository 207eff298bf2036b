// Package create implements "kubectl valkey create": it checks everything that
// the new cluster refers to, creates it with one request, and, if asked to, shows
// how it comes up.
package create

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

const long = `Create a cluster from the menu that the platform team published.

Before anything is written, everything that the cluster refers to is checked:
config, image and its version, roles, users, the TLS Secret and what is in it,
priority class and zones. What is missing is named, together with what exists.
What you may not read is not checked, and the manager reports it later.

With --wait, progress is shown until the cluster is Active. An interrupt or a
timeout ends only the waiting; the cluster goes on being created.

Exit codes: 0 created (with --wait: Active), 1 refused, 2 wrong usage, 124 not
Active in time, 130 interrupted.`

const example = `  # Three shards with a replica each, and wait until it can be used
  kubectl valkey create demo --config standard --shards 3 --replicas 1 --wait

  # With TLS, in another namespace
  kubectl valkey create demo --config standard --shards 3 --replicas 1 --tls-secret demo-tls -n team-a

  # In two zones, strictly spread, on tainted nodes
  kubectl valkey create demo --config large --shards 6 --replicas 1 --zones a,b --zone-spread required --toleration dedicated=valkey:NoSchedule

  # With users; the file is a YAML list of bindings
  kubectl valkey create demo --config standard --shards 3 --replicas 1 --acl-file users.yaml

  # See what would be created, without asking the API server
  kubectl valkey create demo --config standard --shards 3 --replicas 1 --dry-run=client -o yaml`

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

const defaultTimeout = 10 * time.Minute

// Options of "kubectl valkey create".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams
	clock   clock.WithTicker

	name          string
	namespace     string
	wish          wish
	acl           []v1alpha1.ACLBinding
	clusterDomain string
	wait          bool
	timeout       time.Duration
	dryRun        string
	output        string

	cluster *v1alpha1.ValkeyCluster
	// client is made by Complete unless it is there.
	client client.WithWatch
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return (&Options{access: access, flags: flags, streams: streams, clock: clk}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "create NAME --config CONFIG --shards N --replicas N [--wait]",
		DisableFlagsInUseLine: true,
		Short:                 "Create a cluster",
		Long:                  long,
		Example:               example,
		ValidArgsFunction:     cobra.NoFileCompletions,
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
	o.wish.addFlags(fs)
	fs.StringVar(&o.clusterDomain, "cluster-domain", "", "DNS domain of the Kubernetes cluster, to check the names in the TLS Secret with. Default: the one that the certificate is for, else cluster.local.")
	fs.BoolVar(&o.wait, "wait", false, "If true, wait until the cluster is Active and show the progress.")
	fs.DurationVar(&o.timeout, "timeout", defaultTimeout, "With --wait: how long to wait, for example 90s.")
	fs.StringVar(&o.dryRun, "dry-run", dryRunNone, `Must be "none", "server" or "client". With client nothing is sent or checked, and the manifest is printed; with server everything is checked and sent, but not stored.`)
	fs.StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml, name).")
	o.addCompletions(cmd)
	return cmd
}

// Validate checks the command line by itself.
func (o *Options) Validate(args []string, fs *pflag.FlagSet) error {
	if len(args) != 1 {
		return exit.Usagef("create takes one name, got %d; for example: kubectl valkey create demo --config standard --shards 3 --replicas 1", len(args))
	}
	o.name = args[0]
	errs := []error{
		o.wish.check(o.name, fs),
		output.CheckFormat(o.output, output.JSON, output.YAML, output.Name),
		oneOf("dry-run", o.dryRun, dryRunNone, dryRunClient, dryRunServer),
	}
	switch {
	case o.wait && o.dryRun != dryRunNone:
		errs = append(errs, errors.New("--wait and --dry-run don't go together: nothing is created that could be waited for"))
	case o.wait && o.wish.paused:
		errs = append(errs, errors.New("--wait and --paused don't go together: a paused cluster is not made"))
	case o.wait && o.timeout <= 0:
		errs = append(errs, fmt.Errorf("--timeout is %s; it must be above 0", o.timeout))
	case fs.Changed("timeout") && !o.wait:
		errs = append(errs, errors.New("--timeout needs --wait"))
	}
	if o.clusterDomain != "" {
		domain, err := settings.ParseClusterDomain(o.clusterDomain)
		errs = append(errs, err)
		o.clusterDomain = domain
	}
	return exit.UsageError(errors.Join(errs...))
}

// Complete reads files and builds the object.
func (o *Options) Complete() error {
	var err error
	if o.acl, err = readACL(o.wish.aclFile, o.streams.In); err != nil {
		return err
	}
	if o.namespace, err = o.access.Namespace(); err != nil {
		return err
	}
	if o.cluster, err = o.wish.cluster(o.namespace, o.name, o.acl); err != nil {
		return exit.UsageError(err)
	}
	if o.client != nil || o.dryRun == dryRunClient {
		return nil
	}
	o.client, err = o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
	return err
}

// Run checks, creates and waits.
func (o *Options) Run(ctx context.Context) error {
	if o.dryRun == dryRunClient {
		return o.print(o.cluster)
	}
	if err := o.check(ctx); err != nil {
		return err
	}
	var opts []client.CreateOption
	if o.dryRun == dryRunServer {
		opts = append(opts, client.DryRunAll)
	}
	if err := o.client.Create(ctx, o.cluster, opts...); err != nil {
		return o.refused(ctx, err)
	}
	if !o.wait {
		return o.print(o.cluster)
	}
	return o.watch(ctx)
}

// check looks at all references, and writes what is worth knowing to stderr.
func (o *Options) check(ctx context.Context) error {
	c := &checker{reader: o.client, cluster: o.cluster, domain: o.clusterDomain, now: o.clock.Now()}
	err := c.check(ctx)
	for _, note := range c.notes {
		if _, err := fmt.Fprintf(o.streams.ErrOut, "note: %s\n", output.Clean(note)); err != nil {
			return err
		}
	}
	return err
}

// refused explains why the API server did not create the cluster.
func (o *Options) refused(ctx context.Context, err error) error {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, context.Canceled):
		return exit.Interruptedf("interrupted before the API server answered; see whether cluster %s was created with: %s", o.name, o.statusCommand(""))
	case apierrors.IsAlreadyExists(err):
		var there v1alpha1.ValkeyCluster
		if o.client.Get(ctx, client.ObjectKeyFromObject(o.cluster), &there) == nil {
			return alreadyExists(&there, o.cluster)
		}
	case apierrors.IsInvalid(err) && errors.As(err, &status) && status.Status().Details != nil:
		var all []error
		for _, cause := range status.Status().Details.Causes {
			all = append(all, fmt.Errorf("%s: %s", cause.Field, cause.Message))
		}
		if len(all) > 0 {
			return errors.Join(all...)
		}
	}
	return kube.Explain(err, kube.Request{Verb: "create", Resource: "valkeyclusters", Namespace: o.namespace})
}

// progressStream is where people look while a program, if any, reads stdout.
func (o *Options) progressStream() io.Writer {
	if o.output != output.Text {
		return o.streams.ErrOut
	}
	return o.streams.Out
}
