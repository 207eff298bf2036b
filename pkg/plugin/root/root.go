// Package root puts the commands of "kubectl valkey" together.
package root

import (
	"context"
	"flag"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	// kubeconfig users may log in by a provider, oidc for example.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/acknowledge"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/certificate"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/cli"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/completion"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/create"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/endpoints"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/external"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/failover"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/hashpassword"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/install"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/networkpolicy"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/pause"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/report"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/restart"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/rotate"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/status"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/verifytls"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/version"
)

const long = `Create Valkey clusters, see how they are and what becomes of them, and operate them.

Clusters come from a menu of configs that the platform team publishes. This plugin
writes and reads custom resources; the manager in the Kubernetes cluster does the
rest.`

const example = `  # A cluster of three shards with a replica each
  kubectl valkey create demo --config standard --shards 3 --replicas 1 --wait

  # How it is
  kubectl valkey status demo

  # All clusters
  kubectl valkey status -A

  # What a fourth shard would do
  kubectl valkey plan demo --shards 4`

// Surroundings are what the commands get from the process that they run in.
type Surroundings struct {
	Streams genericiooptions.IOStreams
	Clock   clock.WithTicker
	// Getenv is os.Getenv outside tests.
	Getenv func(string) string
}

// New returns the command with all below it.
func New(s Surroundings) *cobra.Command {
	access, flags := kube.NewAccess(), output.NewFlags(s.Getenv)
	root := &cobra.Command{
		Use:               "kubectl-valkey",
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl valkey"},
		Short:             "Create Valkey clusters and see how they are",
		Long:              long,
		Example:           example,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.SetIn(s.Streams.In)
	root.SetOut(s.Streams.Out)
	root.SetErr(s.Streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usagef("%w; see %s --help", err, cmd.CommandPath())
	})

	access.AddFlags(root.PersistentFlags())
	access.AddFlagCompletions(root)
	flags.AddFlags(root)
	addVerbosity(root, s.Streams.ErrOut)

	root.AddCommand(
		create.NewCommand(access, flags, s.Streams, s.Clock),
		status.NewCommand(access, flags, s.Streams, s.Clock),
		verifytls.NewCommand(access, flags, s.Streams, s.Clock),
		certificate.NewCommand(access, flags, s.Streams, s.Clock),
		hashpassword.NewCommand(s.Streams),
		endpoints.NewCommand(access, flags, s.Streams),
		external.NewCommand(access, flags, s.Streams, s.Clock),
		plan.NewCommand(access, flags, s.Streams, s.Clock),
		failover.NewCommand(access, flags, s.Streams, s.Clock),
		restart.NewCommand(access, flags, s.Streams, s.Clock),
		pause.NewPauseCommand(access, flags, s.Streams, s.Clock),
		pause.NewResumeCommand(access, flags, s.Streams, s.Clock),
		rotate.NewCommand(access, flags, s.Streams, s.Clock),
		acknowledge.NewCommand(access, flags, s.Streams, s.Clock),
		networkpolicy.NewCommand(access, flags, s.Streams, s.Clock),
		cli.NewCommand(access, flags, s.Streams),
		report.NewCommand(access, flags, s.Streams, s.Clock),
		install.NewCommand(access, flags, s.Streams, s.Clock),
		version.NewCommand(access, s.Streams),
		completion.NewCommand(s.Streams),
		newOptionsCommand(s.Streams),
	)
	setHelp(root)
	return root
}

// Execute runs a command line and returns the exit code.
func Execute(ctx context.Context, s Surroundings, args []string) int {
	root := New(s)
	root.SetArgs(args)
	return exit.Report(s.Streams.ErrOut, root.ExecuteContext(ctx))
}

// unknownCommand suggests what may have been meant.
func unknownCommand(root *cobra.Command, name string) error {
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(name); len(near) > 0 {
		slices.Sort(near)
		return exit.Usagef("unknown command %q; did you mean %s? See kubectl valkey --help", name, strings.Join(near, " or "))
	}
	return exit.Usagef("unknown command %q; see kubectl valkey --help", name)
}

// noEmptyName refuses what a script passes whose variable is not set: a command
// would take it for no name, and mean all clusters. What follows -- is not for us, and
// shells complete what is still empty.
func noEmptyName(cmd *cobra.Command, args []string) error {
	if cmd.Name() == cobra.ShellCompRequestCmd {
		return nil
	}
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		args = args[:n]
	}
	if slices.Contains(args, "") {
		return exit.Usagef("an argument is empty: is a variable not set? See %s --help", cmd.CommandPath())
	}
	return nil
}

// addVerbosity adds kubectl's -v. Without it the libraries stay silent: an error
// is told once, by the command.
func addVerbosity(root *cobra.Command, errOut io.Writer) {
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	root.PersistentFlags().AddGoFlag(fs.Lookup("v"))
	ctrllog.SetLogger(klog.NewKlogr())
	klog.LogToStderr(false)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		klog.SetOutput(io.Discard)
		if klog.V(1).Enabled() {
			klog.SetOutput(errOut)
		}
		return noEmptyName(cmd, args)
	}
}
