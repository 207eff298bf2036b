package create

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/feed"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/progress"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// watch shows the progress of the cluster that was just created until it is
// Active, and then what to do with it.
func (o *Options) watch(ctx context.Context) error {
	if o.output == output.Text {
		if err := o.print(o.cluster); err != nil {
			return err
		}
	}
	w := o.progressStream()
	reporter := progress.New(w, o.progressTerminal(w), o.clock)
	snapshot, err := o.untilActive(ctx, reporter)
	reporter.Done()
	if err != nil {
		return err
	}
	if o.output != output.Text {
		return o.print(snapshot.Cluster)
	}
	_, err = fmt.Fprint(o.streams.Out, o.whatNext(snapshot, reporter.Elapsed()))
	return err
}

// progressTerminal is no terminal unless stdout is one too: with stdout in a
// pipe, a person reads both in a file.
func (o *Options) progressTerminal(w io.Writer) output.Terminal {
	if !o.flags.Terminal(o.streams.Out).IsTerminal() {
		return o.flags.Terminal(o.streams.Out)
	}
	return o.flags.Terminal(w)
}

// untilActive waits. Every change of the cluster, its nodes and pods is looked at
// once, as it comes.
func (o *Options) untilActive(ctx context.Context, reporter *progress.Reporter) (*inspect.Snapshot, error) {
	// A server that doesn't answer must not outlast the timeout.
	waitCtx, stop := context.WithTimeout(ctx, o.timeout)
	defer stop()
	set, err := feed.Start(waitCtx, o.client, o.clock, inspect.Sources(o.namespace, o.name)...)
	if err != nil {
		return nil, err
	}
	ticker := o.clock.NewTicker(time.Second)
	defer ticker.Stop()
	var snapshot *inspect.Snapshot
	last := "nothing is known yet"
	for {
		select {
		case <-ctx.Done():
			return nil, exit.Interruptedf("interrupted; cluster %s goes on being created, follow it with: %s", o.name, o.statusCommand("-w"))
		case <-waitCtx.Done():
			if ctx.Err() != nil {
				continue
			}
			return nil, exit.Timeoutf("cluster %s is not Active after %s: %s; it goes on being created, follow it with: %s", o.name, o.timeout, last, o.statusCommand("-w"))
		case <-ticker.C():
			// Nobody is asked; but that nothing happens says something too.
			if snapshot != nil {
				last = describe(inspect.ProgressOf(snapshot, o.clock.Now()))
			}
			reporter.Update(last)
			continue
		case <-set.Changed():
		}
		next, err := inspect.Fetch(waitCtx, set, o.namespace, o.name)
		switch {
		case err == nil && next.Cluster.Status.State == v1alpha1.StateActive:
			return next, nil
		case err == nil:
			snapshot = next
			last = describe(inspect.ProgressOf(snapshot, o.clock.Now()))
		case waitCtx.Err() != nil:
			continue // handled above
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("cluster %s in namespace %s was deleted before it was Active", o.name, o.namespace)
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return nil, fmt.Errorf("cluster %s was created, but can't be waited for: %w", o.name, err)
		default:
			snapshot, last = nil, output.Clean(err.Error())
		}
		reporter.Update(last)
	}
}

func (o *Options) statusCommand(flags string) string {
	return o.access.Command(strings.TrimSpace("valkey status "+o.name+" "+flags), o.namespace)
}

// describe is the progress in one line, the most telling first.
func describe(p inspect.Progress) string {
	parts := []string{orElse(p.State, "Waiting for the manager")}
	count := func(format string, have int, of int) {
		if have >= 0 && of > 0 {
			parts = append(parts, fmt.Sprintf(format, have, of))
		}
	}
	count("pods %d/%d", p.Running, p.Nodes)
	count("joined %d/%d", p.Joined, p.Nodes)
	count("slots %d/%d", p.Slots, slots.Count)
	count("replicas in sync %d/%d", p.InSync, p.Replicas)
	text := strings.Join(parts, "  ")
	if p.Waiting != "" {
		text += "  " + p.Waiting
	}
	return text
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// whatNext is the end of a successful wait.
func (o *Options) whatNext(s *inspect.Snapshot, elapsed time.Duration) string {
	var b strings.Builder
	spec := s.Cluster.Spec
	fmt.Fprintf(&b, "Cluster %s is Active after %s: %s.\n", o.name, elapsed, output.Shape(spec.Shards, spec.ReplicasPerShard))
	if e := s.Cluster.Status.Endpoint; e != "" {
		fmt.Fprintf(&b, "Clients in Kubernetes connect to %s.\n", e)
	}
	b.WriteString("\nTry next:\n")
	fmt.Fprintf(&b, "  %s\n", o.statusCommand(""))
	if primary := firstPrimary(s.Cluster); primary != "" && spec.TLS == nil {
		fmt.Fprintf(&b, "  %s -- valkey-cli -c\n", o.access.Command("exec -it "+primary, o.namespace))
	}
	return b.String()
}

func firstPrimary(c *v1alpha1.ValkeyCluster) string {
	for _, s := range c.Status.Shards {
		if s.Primary != "" {
			return s.Primary
		}
	}
	return ""
}
