// Package pause implements "kubectl valkey pause" and "kubectl valkey resume".
package pause

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

const longPause = `Make the manager keep its hands off a cluster: it goes on reporting, but changes
nothing. No node is made or replaced, no slot is moved, no setting is applied, and
requests are not carried out until the cluster is resumed.

The servers go on serving. When a primary dies they elect a replica by themselves,
but nobody replaces what died. What was begun with a server, such as a migration of
slots, that server finishes.

It sets spec.paused. Exit codes: 0 paused, 1 refused, 2 wrong usage, 130
interrupted.`

const examplePause = `  # Before a look at the servers by hand
  kubectl valkey pause demo

  # And after
  kubectl valkey resume demo`

const longResume = `Let the manager look after a paused cluster again. What has come up meanwhile, dead
nodes or changes of the spec, it takes up at once; kubectl valkey plan NAME shows
beforehand what that is.

It unsets spec.paused. Exit codes: 0 resumed, 1 refused, 2 wrong usage, 130
interrupted.`

const exampleResume = `  # See what the manager will do, then let it
  kubectl valkey plan demo
  kubectl valkey resume demo`

// Options of "kubectl valkey pause" and "kubectl valkey resume".
type Options struct {
	operation.Options

	// paused is what the command makes of the cluster; verb and done name that.
	paused     bool
	verb, done string
	// means says what the cluster's new state means.
	means string
}

// NewPauseCommand returns the command that pauses.
func NewPauseCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return pausing(operation.New(access, flags, streams, clk)).command(longPause, examplePause, "Keep the manager from changing a cluster")
}

// NewResumeCommand returns the command that ends a pause.
func NewResumeCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return resuming(operation.New(access, flags, streams, clk)).command(longResume, exampleResume, "Let the manager look after a paused cluster again")
}

func pausing(o operation.Options) *Options {
	return &Options{
		Options: o, paused: true, verb: "pause", done: "paused",
		means: "the manager reports, but changes nothing: what dies is not replaced, and requests wait",
	}
}

func resuming(o operation.Options) *Options {
	return &Options{
		Options: o, verb: "resume", done: "resumed",
		means: "the manager takes up what has come up meanwhile",
	}
}

func (o *Options) command(long, example, short string) *cobra.Command {
	return o.Command(&cobra.Command{Use: o.verb + " NAME", Short: short, Long: long, Example: example}, nil, o.run)
}

func (o *Options) run(ctx context.Context) error {
	s, err := o.Look(ctx)
	if err != nil {
		return err
	}
	result := operation.Result{
		Namespace: o.Namespace, Name: o.Name, Operation: o.verb,
		State: operation.StateUnchanged, Message: fmt.Sprintf("it was %s before", o.state(s.Cluster.Spec.Paused)),
	}
	if s.Cluster.Spec.Paused == o.paused {
		return o.Print(result, "was "+o.state(o.paused)+" before")
	}
	err = o.Patch(ctx, s.Cluster, func(c *v1alpha1.ValkeyCluster) { c.Spec.Paused = o.paused })
	if err != nil {
		return err
	}
	result.State, result.Message = operation.StateChanged, o.means
	if err := o.Print(result, o.done); err != nil || o.Output != output.Text || o.DryRun != operation.DryRunNone {
		return err
	}
	next := o.Access.Command("valkey plan "+o.Name, o.Namespace)
	if o.paused {
		next = o.Access.Command("valkey resume "+o.Name, o.Namespace)
	}
	_, err = fmt.Fprintf(o.Streams.Out, "From now on %s.\nNext: %s\n", o.means, next)
	return err
}

func (o *Options) state(paused bool) string {
	if paused {
		return "paused"
	}
	return "not paused"
}
