// Package operation holds what the commands share that change one existing
// cluster: their flags, the look at the cluster before, the writing of a request to
// the manager, and the showing of how it is answered.
package operation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

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

// Values of --dry-run.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// Options of a command that changes one cluster.
type Options struct {
	Access  *kube.Access
	Flags   *output.Flags
	Streams genericiooptions.IOStreams
	Clock   clock.WithTicker
	// Client is made by Complete unless it is there.
	Client client.WithWatch
	// Random makes IDs.
	Random io.Reader

	// Name and Namespace of the cluster.
	Name, Namespace string
	// Wait for the manager's answer, for Timeout at most.
	Wait    bool
	Timeout time.Duration
	// DryRun and Output are the flags of the same names.
	DryRun, Output string
}

// New returns options with what a command gets from the process that it runs in.
func New(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) Options {
	return Options{Access: access, Flags: flags, Streams: streams, Clock: clk, Random: rand.Reader}
}

// Command fills in what all these commands have: one argument, the steps of a run,
// the flags --dry-run and -o. Validate checks more of the command line, run does
// it; both may use what was filled in.
func (o *Options) Command(cmd *cobra.Command, validate func(*pflag.FlagSet) error, run func(context.Context) error) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	cmd.ValidArgsFunction = o.Access.CompleteCluster
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.validate(cmd, args, validate); err != nil {
			return err
		}
		if err := o.complete(); err != nil {
			return err
		}
		return run(cmd.Context())
	}
	fs := cmd.Flags()
	fs.StringVar(&o.DryRun, "dry-run", DryRunNone, `Must be "none", "server" or "client". With client everything is checked and nothing is sent; with server it is sent, but not stored.`)
	fs.StringVarP(&o.Output, "output", "o", "", "Output format. One of: (json, yaml, name).")
	for flag, words := range map[string][]string{
		"dry-run": {DryRunNone, DryRunServer, DryRunClient},
		"output":  {output.JSON, output.YAML, output.Name},
	} {
		// The flags were just defined, so they can be completed.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// AddWaitFlags adds --wait and --timeout.
func (o *Options) AddWaitFlags(fs *pflag.FlagSet, wait bool, timeout time.Duration) {
	fs.BoolVar(&o.Wait, "wait", wait, "If true, wait until the manager has done it, and show the progress.")
	fs.DurationVar(&o.Timeout, "timeout", timeout, "With --wait: how long to wait, for example 90s.")
}

func (o *Options) validate(cmd *cobra.Command, args []string, more func(*pflag.FlagSet) error) error {
	if len(args) != 1 {
		return exit.Usagef("%s takes the name of one cluster, got %s; kubectl valkey status lists them", cmd.Name(), output.Arguments(args))
	}
	o.Name = args[0]
	fs := cmd.Flags()
	errs := []error{output.CheckFormat(o.Output, output.JSON, output.YAML, output.Name)}
	switch o.DryRun {
	case DryRunNone, DryRunClient, DryRunServer:
	default:
		errs = append(errs, fmt.Errorf("--dry-run %q is not known: use %s", o.DryRun, strings.Join([]string{DryRunNone, DryRunServer, DryRunClient}, ", ")))
	}
	switch dry := o.DryRun != DryRunNone; {
	case dry && fs.Changed("wait") && o.Wait:
		errs = append(errs, errors.New("--wait and --dry-run don't go together: nothing is asked for that could be waited for"))
	case dry:
		o.Wait = false
	case fs.Changed("timeout") && !o.Wait:
		errs = append(errs, errors.New("--timeout needs --wait"))
	case o.Wait && o.Timeout <= 0:
		errs = append(errs, fmt.Errorf("--timeout is %s; it must be above 0", o.Timeout))
	}
	if more != nil {
		errs = append(errs, more(fs))
	}
	return exit.UsageError(errors.Join(errs...))
}

func (o *Options) complete() error {
	var err error
	if o.Namespace, err = o.Access.Namespace(); err != nil {
		return err
	}
	if o.Client != nil {
		return nil
	}
	o.Client, err = o.Access.Client(o.Streams.ErrOut, o.Flags.Palette(o.Streams.ErrOut).Enabled())
	return err
}

// Look reads the cluster with what belongs to it.
func (o *Options) Look(ctx context.Context) (*inspect.Snapshot, error) {
	s, err := inspect.Fetch(ctx, o.Client, o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	if s.Cluster.DeletionTimestamp != nil {
		return nil, fmt.Errorf("cluster %s in namespace %s is being deleted", o.Name, o.Namespace)
	}
	return s, nil
}

// Served returns why the manager would not carry out a request for a cluster, if
// it would not.
func (o *Options) Served(c *v1alpha1.ValkeyCluster) error {
	switch {
	case c.Spec.Paused:
		return fmt.Errorf("cluster %s is paused, so the manager changes nothing: resume it first with %s",
			o.Name, o.Access.Command("valkey resume "+o.Name, o.Namespace))
	case c.Status.State == v1alpha1.StateInvalid:
		return fmt.Errorf("cluster %s is Invalid, so the manager changes nothing: %s", o.Name, output.Clean(c.Status.Message))
	case c.Status.State == v1alpha1.StateActive:
		return nil
	case inspect.ManagerHint(c, o.Clock.Now()) != "":
		return errors.New(inspect.ManagerHint(c, o.Clock.Now()))
	}
	return fmt.Errorf("cluster %s is still being created: try again once it is Active; follow it with %s", o.Name, o.StatusCommand())
}

// Note writes to stderr what is worth knowing.
func (o *Options) Note(format string, args ...any) error {
	_, err := fmt.Fprintln(o.Streams.ErrOut, "note: "+output.Clean(fmt.Sprintf(format, args...)))
	return err
}

// StatusCommand is the command line that follows the cluster.
func (o *Options) StatusCommand() string {
	return o.Access.Command("valkey status "+o.Name+" -w", o.Namespace)
}
