// Package acknowledge implements "kubectl valkey acknowledge".
package acknowledge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

const long = `Accept that data is lost. There are two situations:

The manager waits for nodes that don't answer, because only they may still hold the
data of a shard (condition Degraded, reason CopiesAwaited). Its slots are not
served. If the nodes can't come back, acknowledging makes the manager give the
slots to empty nodes. What the awaited nodes hold is then given up for good.

The manager has given slots to empty nodes, because no copy of their data was left
(condition DataLoss). Acknowledging takes the condition away, nothing else.

What would be lost is shown first, and has to be confirmed by the name of the
cluster, or with --yes.

Exit codes: 0 done or nothing to acknowledge, 1 refused or failed, 2 wrong usage,
124 not done in time, 130 interrupted.`

const example = `  # See what is lost, and accept it
  kubectl valkey acknowledge demo

  # See it without accepting it
  kubectl valkey acknowledge demo --dry-run=client

  # From a script
  kubectl valkey acknowledge demo --yes`

const timeout = 5 * time.Minute

// Options of "kubectl valkey acknowledge".
type Options struct {
	operation.Options

	yes bool
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return (&Options{Options: operation.New(access, flags, streams, clk)}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := o.Command(&cobra.Command{
		Use:     "acknowledge NAME [--yes]",
		Short:   "Accept that data is lost",
		Long:    long,
		Example: example,
	}, o.validate, o.run)
	fs := cmd.Flags()
	fs.BoolVarP(&o.yes, "yes", "y", false, "If true, don't ask for confirmation.")
	o.AddWaitFlags(fs, true, timeout)
	return cmd
}

func (o *Options) validate(*pflag.FlagSet) error {
	if !o.yes && o.DryRun == operation.DryRunNone && !isTerminal(o.Streams.In) {
		return errors.New("what is lost has to be confirmed, and there is no terminal to ask on: give --yes, or look first with --dry-run=client")
	}
	return nil
}

func (o *Options) run(ctx context.Context) error {
	s, err := o.Look(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(o.Served(s.Cluster), o.Unasked(s.Cluster, request.Acknowledge)); err != nil {
		return err
	}
	loss := lossOf(s)
	if loss.none() {
		return o.Print(operation.Result{
			Namespace: o.Namespace, Name: o.Name, Operation: request.Acknowledge, State: operation.StateUnchanged,
			Message: "no copy is waited for, and no loss is reported",
		}, "has nothing to acknowledge: no copy is waited for, and no loss is reported")
	}
	if _, err := fmt.Fprint(o.Streams.ErrOut, loss.text(o.Namespace+"/"+o.Name, o.Flags.Palette(o.Streams.ErrOut))); err != nil {
		return err
	}
	if !o.yes && o.DryRun == operation.DryRunNone {
		if err := o.confirm(ctx); err != nil {
			return err
		}
	}
	id, err := o.NewID()
	if err != nil {
		return err
	}
	return o.Ask(ctx, s.Cluster, request.NewAcknowledge(id))
}

// confirm asks for the name of the cluster: a y is typed too easily.
func (o *Options) confirm(ctx context.Context) error {
	if _, err := fmt.Fprintf(o.Streams.ErrOut, "\nTo go on, type the name of the cluster: "); err != nil {
		return err
	}
	typed, err := readLine(ctx, o.Streams.In)
	switch {
	case ctx.Err() != nil:
		return exit.Interruptedf("interrupted; nothing was acknowledged")
	case err != nil:
		return fmt.Errorf("read the confirmation: %w; nothing was acknowledged", err)
	case typed != o.Name:
		return fmt.Errorf("%q is not the name of the cluster; nothing was acknowledged", typed)
	}
	return nil
}
