// Package networkpolicy implements "kubectl valkey networkpolicy": it prints the
// NetworkPolicies of pkg/netpol, applies them, compares them with what is there, and
// tries out what they allow and deny.
package networkpolicy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/netpol"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

const long = `Print the NetworkPolicies that let a cluster do all it needs and nothing else: its
clients and the manager reach port 6379 of its pods, its pods reach each other on
6379 and 16379. They select pods by label, and stand for every connection of the
network contract (docs/network.md). The cluster need not exist yet.

Clients are pods with the label valkey-client=true, unless others are named. A
--client-selector without --client-namespace means pods of the cluster's own
namespace; with it, pods of the namespaces that are selected. Each may be given
several times; then every selector holds in every namespace.

With --egress also where the cluster's pods may connect to is restricted: to each
other and to DNS. With --default-deny the namespace is closed to all that no policy
allows, and, with --egress, clients of this namespace are let out to the cluster.
With --manager the policy for the manager comes too; without a name, it alone.

Nothing is written unless --apply is given. A policy of the same name that was not
made by this command is never overwritten.

On TLS clusters the kubelet opens connections to port 6379 to see whether servers
are alive. Most network plugins exempt it from policies. Where yours does not, name
the addresses of the Kubernetes nodes with --kubelet-cidr, or pods are killed.

--test starts pods for a minute that take the places of client, manager and others,
shows which flows pass and which don't, and removes them. It uses the policies that
are in force, so apply them first.

Exit codes: 0 done (with --diff: nothing differs; with --test: every flow is as it
should be), 1 refused or not so, 2 wrong usage, 130 interrupted.`

const example = `  # For clients with the label valkey-client=true in the cluster's namespace
  kubectl valkey networkpolicy demo

  # For the pods app=web of namespace team-b; apply it
  kubectl valkey networkpolicy demo --client-selector app=web --client-namespace team-b --apply

  # Close the namespace to all else, in both directions
  kubectl valkey networkpolicy demo --egress --default-deny --apply

  # What would change
  kubectl valkey networkpolicy demo --egress --diff

  # Do they do what they should?
  kubectl valkey networkpolicy demo --egress --test

  # For the manager, for the platform team to apply
  kubectl valkey networkpolicy --manager -o yaml`

// defaultClient are the pods that count as clients when no others are named.
const defaultClient = "valkey-client=true"

// Options of "kubectl valkey networkpolicy".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams
	clock   clock.WithTicker
	// client and run are made by Complete unless they are there.
	client client.WithWatch
	run    kube.Runner

	name, namespace string
	want            wish
	apply           bool
	diff            bool
	test            bool
	timeout         time.Duration
	dryRun, output  string
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return (&Options{access: access, flags: flags, streams: streams, clock: clk}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "networkpolicy NAME [--egress] [--apply|--diff|--test]",
		Aliases:               []string{"netpol"},
		DisableFlagsInUseLine: true,
		Short:                 "Make NetworkPolicies for a cluster and for the manager",
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
	o.want.addFlags(fs)
	fs.BoolVar(&o.apply, "apply", false, "If true, write the policies rather than print them.")
	fs.BoolVar(&o.diff, "diff", false, "If true, show what --apply would change.")
	fs.BoolVar(&o.test, "test", false, "If true, start short-lived pods and show which flows pass and which don't.")
	fs.DurationVar(&o.timeout, "timeout", 2*time.Minute, "With --test: how long it may take, for example 90s.")
	fs.StringVar(&o.dryRun, "dry-run", operation.DryRunNone, `With --apply: must be "none", "server" or "client". With client nothing is sent; with server it is sent, but not stored.`)
	fs.StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml, name). Policies are printed as YAML by default.")
	for flag, words := range map[string][]string{
		"dry-run": {operation.DryRunNone, operation.DryRunServer, operation.DryRunClient},
		"output":  {output.JSON, output.YAML, output.Name},
	} {
		// The flags were just defined, so they can be completed.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("client-namespace", o.access.CompleteNamespaces)
	return cmd
}

// Validate checks arguments and flags.
func (o *Options) Validate(args []string, fs *pflag.FlagSet) error {
	switch {
	case len(args) > 1:
		return exit.Usagef("networkpolicy takes the name of one cluster, got %s", output.Arguments(args))
	case len(args) == 1:
		o.name = args[0]
	case !o.want.manager:
		return exit.Usagef("name a cluster, or give --manager for the manager's policy alone; kubectl valkey status lists clusters")
	}
	errs := []error{output.CheckFormat(o.output, output.JSON, output.YAML, output.Name), o.want.parse(fs, o.name != "")}
	if o.name != "" {
		errs = append(errs, kube.CheckClusterName(o.name))
	}
	modes := 0
	for _, on := range []bool{o.apply, o.diff, o.test} {
		if on {
			modes++
		}
	}
	switch o.dryRun {
	case operation.DryRunNone, operation.DryRunClient, operation.DryRunServer:
	default:
		errs = append(errs, fmt.Errorf("--dry-run %q is not known: use none, server, client", o.dryRun))
	}
	if modes > 1 {
		errs = append(errs, errors.New("--apply, --diff and --test are different things: give one of them"))
	}
	if o.dryRun != operation.DryRunNone && !o.apply {
		errs = append(errs, errors.New("--dry-run needs --apply: without it nothing is written anyway"))
	}
	if o.diff && o.output != output.Text {
		errs = append(errs, errors.New("--diff prints a diff only: leave --output out"))
	}
	if o.test && (o.name == "" || o.output == output.Name) {
		errs = append(errs, errors.New("--test needs the name of a cluster, and prints a table, json or yaml"))
	}
	if fs.Changed("timeout") && !o.test || o.timeout <= 0 {
		errs = append(errs, errors.New("--timeout needs --test, and a time above 0"))
	}
	return exit.UsageError(errors.Join(errs...))
}

// Complete finds out where the cluster is.
func (o *Options) Complete() error {
	var err error
	if o.namespace, err = o.access.Namespace(); err != nil {
		return err
	}
	if o.run == nil {
		o.run = o.access.Run
	}
	if o.client == nil {
		o.client, err = o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
	}
	return err
}

// Run makes the policies and does with them what was asked for.
func (o *Options) Run(ctx context.Context) error {
	cluster, err := o.cluster(ctx)
	if err != nil {
		return err
	}
	if o.test {
		return o.tryOut(ctx, cluster)
	}
	var policies []*networkingv1.NetworkPolicy
	if o.name != "" {
		policies = cluster.Policies()
	}
	if o.want.manager {
		manager, err := o.managerPolicy(ctx)
		if err != nil {
			return err
		}
		policies = append(policies, manager.Policy())
	}
	switch {
	case o.apply:
		return o.write(ctx, policies)
	case o.diff:
		return o.compare(ctx, policies)
	}
	return o.print(policies)
}

// print writes policies as kubectl apply reads them.
func (o *Options) print(policies []*networkingv1.NetworkPolicy) error {
	text, err := render(o.output, policies)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.streams.Out, text)
	return err
}

func render(format string, policies []*networkingv1.NetworkPolicy) (string, error) {
	switch format {
	case output.Name:
		var b strings.Builder
		for _, p := range policies {
			fmt.Fprintf(&b, "networkpolicy.networking.k8s.io/%s\n", p.Name)
		}
		return b.String(), nil
	case output.JSON:
		if len(policies) == 1 {
			return output.Data(output.JSON, policies[0])
		}
		return output.Data(output.JSON, map[string]any{"apiVersion": "v1", "kind": "List", "items": policies})
	}
	var all []string
	for _, p := range policies {
		text, err := output.Data(output.YAML, p)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	return strings.Join(all, "---\n"), nil
}

func (o *Options) note(format string, args ...any) error {
	_, err := fmt.Fprintln(o.streams.ErrOut, "note: "+output.Clean(fmt.Sprintf(format, args...)))
	return err
}

// at is where the manager runs.
func (o *Options) at() netpol.ManagerAt {
	at := netpol.DefaultManager()
	at.Namespace = o.want.managerNamespace
	return at
}
