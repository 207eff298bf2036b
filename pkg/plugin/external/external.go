// Package external implements "kubectl valkey external enable" and "disable".
package external

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

const longEnable = `Let clients outside Kubernetes use a cluster, step by step: first every node gets a
port outside, then, if there is a domain, clients are directed to the outside names.

Each step is shown before it is done, and waited for until every node has it; between
two steps the command asks whether to go on. It can be interrupted at any time and
run again: it goes on from where the cluster is. It stops when somebody else changes
the cluster's spec meanwhile.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 124 not done in time, 130
interrupted.`

const exampleEnable = `  # Ports on every machine of Kubernetes, and names
  kubectl valkey external enable demo --domain valkey.example.com

  # A load balancer for each shard, without asking
  kubectl valkey external enable demo --service-type LoadBalancer --domain valkey.example.com --yes

  # Only show the steps
  kubectl valkey external enable demo --domain valkey.example.com --dry-run=client`

const longDisable = `Take external access away from a cluster in two steps: first clients are directed to
the addresses inside, and only when every node does that the ports outside are
closed. So no client is ever given a name that leads nowhere.

Clients that connected before may hold the old names until they refresh what they
know of the cluster. After the first step the command lists those that are still
connected since before it, by their addresses as the nodes see them: give them time,
or restart them, before the ports are closed. To list them it runs cat in the pods,
which needs create pods/exec; without that permission it says so and goes on.

It can be interrupted at any time and run again: it goes on from where the cluster
is. It stops when somebody else changes the cluster's spec meanwhile.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 124 not done in time, 130
interrupted.`

const exampleDisable = `  # Step by step
  kubectl valkey external disable demo

  # Without asking
  kubectl valkey external disable demo --yes`

// timeout of each step: the first one replaces every node.
const timeout = 15 * time.Minute

// Options of "kubectl valkey external enable" and "disable".
type Options struct {
	operation.Options

	verb string
	yes  bool
	// refresh is how often the cluster is looked at while it is waited for.
	refresh time.Duration
	// runner runs a command in a pod; nil: through the API server.
	runner kube.Runner
	// resolve looks a name up; nil: as programs of this machine do.
	resolve func(ctx context.Context, host string) error

	wish        wish
	serviceType string
	policy      string
	endpoint    string
	gateway     string
	basePort    int32
}

// NewCommand returns the command with the two below it.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	cmd := &cobra.Command{
		Use: "external", Short: "Turn access from outside Kubernetes on and off, step by step",
		Long: "Turn access from outside Kubernetes on and off, in steps that are safe for clients.",
		Example: `  # On, step by step
  kubectl valkey external enable demo --domain valkey.example.com

  # Off, step by step
  kubectl valkey external disable demo`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("unknown command %q; use external enable or external disable", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(enabling(operation.New(access, flags, streams, clk)).command(), disabling(operation.New(access, flags, streams, clk)).command())
	return cmd
}

func enabling(o operation.Options) *Options {
	return &Options{Options: o, verb: "enable", refresh: time.Second, wish: wish{set: map[string]bool{}}}
}

func disabling(o operation.Options) *Options {
	return &Options{Options: o, verb: "disable", refresh: time.Second}
}

func (o *Options) command() *cobra.Command {
	enable := o.verb == "enable"
	cmd := &cobra.Command{Use: "disable NAME", Short: "Take clients back inside, then close the ports outside", Long: longDisable, Example: exampleDisable}
	if enable {
		cmd = &cobra.Command{Use: "enable NAME", Short: "Give every node a port outside, then direct clients there", Long: longEnable, Example: exampleEnable}
	}
	cmd = o.Command(cmd, o.validate, o.run)
	fs := cmd.Flags()
	fs.BoolVarP(&o.yes, "yes", "y", false, "If true, don't ask between the steps.")
	fs.DurationVar(&o.Timeout, "timeout", timeout, "How long to wait for each step, for example 90s.")
	o.Wait = true
	if enable {
		fs.StringVar(&o.serviceType, "service-type", "", "NodePort, LoadBalancer or ClusterIP. Default: what the cluster has, else NodePort, or ClusterIP with --gateway.")
		fs.StringVar(&o.policy, "external-traffic-policy", "", "Cluster or Local. Local keeps the client's address.")
		fs.StringVar(&o.wish.access.HostnamePrefix, "hostname-prefix", "", "Start of the hostnames <prefix>-<shard>.<domain>.")
		fs.StringVar(&o.wish.access.Domain, "domain", "", "DNS domain of the shards' hostnames; with it clients are directed there at the end.")
		fs.StringVar(&o.endpoint, "preferred-endpoint-type", "", "ip stops before the last step: names are announced, and nobody is directed there. Default: hostname if there is a domain.")
		fs.StringVar(&o.gateway, "gateway", "", "Gateway that TCPRoutes attach to, as name or namespace/name.")
		fs.Int32Var(&o.basePort, "gateway-base-port", 0, "With --gateway: its first listener port.")
		for flag, words := range map[string][]string{
			"service-type": {"NodePort", "LoadBalancer", "ClusterIP"}, "external-traffic-policy": {"Cluster", "Local"}, "preferred-endpoint-type": {"ip", "hostname"},
		} {
			// The flags were just defined, so they can be completed.
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return cmd
}

func (o *Options) validate(fs *pflag.FlagSet) error {
	var errs []error
	oneOf := func(flag, value string, allowed ...string) {
		for _, a := range allowed {
			if value == a {
				return
			}
		}
		if value != "" {
			errs = append(errs, fmt.Errorf("--%s %q is not known: use %s", flag, value, strings.Join(allowed, ", ")))
		}
	}
	if o.verb == "enable" {
		oneOf("service-type", o.serviceType, "NodePort", "LoadBalancer", "ClusterIP")
		oneOf("external-traffic-policy", o.policy, "Cluster", "Local")
		oneOf("preferred-endpoint-type", o.endpoint, "ip", "hostname")
		fs.Visit(func(f *pflag.Flag) { o.wish.set[f.Name] = true })
		o.wish.access.ServiceType = corev1.ServiceType(o.serviceType)
		o.wish.access.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicy(o.policy)
		o.wish.access.PreferredEndpointType = v1alpha1.EndpointType(o.endpoint)
		if (o.gateway == "") != (o.basePort == 0) {
			errs = append(errs, errors.New("--gateway and --gateway-base-port go together"))
		}
		if o.gateway != "" {
			ref := v1alpha1.GatewayReference{Name: o.gateway}
			if namespace, name, ok := strings.Cut(o.gateway, "/"); ok {
				ref = v1alpha1.GatewayReference{Namespace: namespace, Name: name}
			}
			o.wish.access.Gateway = &v1alpha1.GatewayAccess{GatewayRef: ref, BasePort: o.basePort}
		}
	}
	if o.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout is %s; it must be above 0", o.Timeout))
	}
	if !o.yes && o.DryRun == operation.DryRunNone && !isTerminal(o.Streams.In) {
		errs = append(errs, errors.New("each step has to be confirmed, and there is no terminal to ask on: give --yes, or look first with --dry-run=client"))
	}
	return errors.Join(errs...)
}

// run does what is left to do, one step after the other.
func (o *Options) run(ctx context.Context) error {
	s, err := o.Look(ctx)
	if err != nil {
		return err
	}
	if o.runner == nil {
		o.runner = o.Access.Run
	}
	if err := o.Served(s.Cluster); err != nil {
		return err
	}
	steps := disableSteps()
	if o.verb == "enable" {
		steps = enableSteps(o.wish, s.Cluster.Spec.ExternalAccess)
	}
	if err := o.show(steps, s.Cluster, s.Nodes.Items); err != nil {
		return err
	}
	if o.DryRun != operation.DryRunNone {
		return o.tryAll(ctx, steps, s.Cluster)
	}
	changed, err := o.walk(ctx, steps, s)
	if err != nil {
		return err
	}
	result := operation.Result{Namespace: o.Namespace, Name: o.Name, Operation: "external " + o.verb, State: operation.StateUnchanged, Message: "nothing was left to do"}
	done := "has external access " + o.verb + "d already"
	if changed {
		result.State, result.Message, done = operation.StateChanged, "every step has taken effect", "external access "+o.verb+"d"
	}
	return o.Print(result, done)
}

// tryAll has the API server check each change on top of those before.
func (o *Options) tryAll(ctx context.Context, steps []step, c *v1alpha1.ValkeyCluster) error {
	all := func(c *v1alpha1.ValkeyCluster) {
		for _, s := range steps {
			s.change(&c.Spec)
		}
	}
	if err := o.Patch(ctx, c, all); err != nil {
		return err
	}
	return o.Print(operation.Result{Namespace: o.Namespace, Name: o.Name, Operation: "external " + o.verb, State: operation.StateUnchanged, Message: "nothing was changed"}, "not changed")
}

// show lists the steps, and which of them are done.
func (o *Options) show(steps []step, c *v1alpha1.ValkeyCluster, nodes []v1alpha1.ValkeyNode) error {
	after := c.DeepCopy() // the steps before
	for i, s := range steps {
		state, pending := "to do", s.pending(after)
		s.change(&after.Spec)
		switch {
		case !pending && s.done(c, nodes) == "":
			state = "done"
		case !pending:
			state = "under way: " + output.Clean(s.done(c, nodes))
		}
		if _, err := fmt.Fprintf(o.Streams.ErrOut, "Step %d of %d (%s): %s.\n  Then %s.\n", i+1, len(steps), state, s.title, s.means); err != nil {
			return err
		}
	}
	return nil
}
