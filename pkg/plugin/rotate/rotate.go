// Package rotate implements "kubectl valkey rotate-credentials".
package rotate

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

const long = `Give the manager's own two users of a cluster, _momento_operator and _momento_repl,
new passwords. Both the old and the new ones are accepted until every node uses the
new ones, so no replication link and no client connection drops. The passwords of
your own users are not touched: those are in the bindings.

Ctrl-C ends only the waiting. The rotation can be interrupted at any step, and goes
on where it was.

Exit codes: 0 done (with --wait=false: asked for), 1 refused or failed, 2 wrong
usage, 124 not done in time, 130 interrupted.`

const example = `  # New passwords for the manager's users
  kubectl valkey rotate-credentials demo

  # Only ask for it
  kubectl valkey rotate-credentials demo --wait=false`

// timeout allows for kubelets that take their whole period to refresh files, twice.
const timeout = 10 * time.Minute

// Options of "kubectl valkey rotate-credentials".
type Options struct {
	operation.Options
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return (&Options{Options: operation.New(access, flags, streams, clk)}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := o.Command(&cobra.Command{
		Use:     "rotate-credentials NAME [--wait=false]",
		Short:   "Give the manager's own users new passwords",
		Long:    long,
		Example: example,
	}, nil, o.run)
	o.AddWaitFlags(cmd.Flags(), true, timeout)
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	s, err := o.Look(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(o.Served(s.Cluster), o.Unasked(s.Cluster, request.RotateCredentials)); err != nil {
		return err
	}
	id, err := o.NewID()
	if err != nil {
		return err
	}
	return o.Ask(ctx, s.Cluster, request.NewRotateCredentials(id))
}
