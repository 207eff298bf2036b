package external

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/progress"
)

// walk does what is left to do of the steps, and reports whether it changed anything.
func (o *Options) walk(ctx context.Context, steps []step, s *inspect.Snapshot) (changed bool, err error) {
	generation := s.Cluster.Generation
	for i, step := range steps {
		c, nodes, err := o.fresh(ctx, generation)
		if err != nil {
			return changed, err
		}
		var before *connections
		switch {
		case step.pending(c):
			if step.leads {
				if err := o.tellUnresolved(ctx, c); err != nil {
					return changed, err
				}
			}
			if err := o.ask(ctx, i, step); err != nil {
				return changed, err
			}
			if step.takesBack {
				found, err := o.connected(ctx)
				if err != nil {
					return changed, err
				}
				before = &found
			}
			if generation, err = o.take(ctx, step, generation); err != nil {
				return changed, err
			}
			changed = true
		case step.done(c, nodes) != "":
		case step.takesBack && i+1 < len(steps) && steps[i+1].pending(c) && named(c):
			// It was interrupted between the steps.
		default:
			continue
		}
		if err := o.await(ctx, i, step, generation); err != nil {
			return changed, err
		}
		if step.takesBack {
			if err := o.tellHolders(ctx, before); err != nil {
				return changed, err
			}
		}
	}
	return changed, nil
}

// fresh reads the cluster and its nodes. It fails when somebody else has changed the
// spec: what was shown and confirmed is then no longer what would be done.
func (o *Options) fresh(ctx context.Context, generation int64) (*v1alpha1.ValkeyCluster, []v1alpha1.ValkeyNode, error) {
	s, err := o.Look(ctx)
	if err != nil {
		return nil, nil, err
	}
	if s.Cluster.Generation != generation {
		return nil, nil, o.changedMeanwhile()
	}
	if s.Nodes.Err != nil {
		return nil, nil, s.Nodes.Err
	}
	return s.Cluster, s.Nodes.Items, nil
}

func (o *Options) changedMeanwhile() error {
	return fmt.Errorf("somebody else changed the spec of cluster %s meanwhile; look at it, then go on with %s", o.Name, o.again())
}

// again is the command line that goes on.
func (o *Options) again() string {
	return o.Access.Command("valkey external "+o.verb+" "+o.Name, o.Namespace)
}

// take makes the change of a step, on exactly the spec that was shown.
func (o *Options) take(ctx context.Context, s step, generation int64) (int64, error) {
	for {
		c, _, err := o.fresh(ctx, generation)
		if err != nil {
			return 0, err
		}
		before := c.DeepCopy()
		s.change(&c.Spec)
		err = o.Client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			continue // most often only the status changed; fresh tells
		}
		if err != nil && ctx.Err() != nil {
			return 0, exit.Interruptedf("interrupted before the API server answered; go on with %s", o.again())
		}
		return c.Generation, kube.Explain(err, kube.Request{Verb: "patch", Resource: "valkeyclusters", Namespace: o.Namespace})
	}
}

// await shows how a step takes effect until every node has it.
func (o *Options) await(ctx context.Context, i int, s step, generation int64) error {
	reporter := progress.New(o.Streams.ErrOut, o.Flags.Terminal(o.Streams.ErrOut), o.Clock)
	defer reporter.Done()
	begin := o.Clock.Now()
	ticker := o.Clock.NewTicker(o.refresh)
	defer ticker.Stop()
	for {
		c, nodes, err := o.fresh(ctx, generation)
		switch {
		case ctx.Err() != nil:
			return exit.Interruptedf("interrupted; the manager goes on with step %d: go on with %s", i+1, o.again())
		case err != nil:
			return err
		}
		waiting := s.done(c, nodes)
		if waiting == "" {
			reporter.Update(fmt.Sprintf("step %d: every node has it", i+1))
			return nil
		}
		reporter.Update(fmt.Sprintf("step %d: %s", i+1, output.Clean(waiting)))
		if o.Clock.Since(begin) >= o.Timeout {
			return exit.Timeoutf("step %d of cluster %s has not taken effect after %s: %s; the manager goes on with it: go on with %s", i+1, o.Name, o.Timeout, output.Clean(waiting), o.again())
		}
		select {
		case <-ctx.Done():
		case <-ticker.C():
		}
	}
}

// ask asks whether to do a step.
func (o *Options) ask(ctx context.Context, i int, s step) error {
	if o.yes {
		return nil
	}
	if _, err := fmt.Fprintf(o.Streams.ErrOut, "\nStep %d: %s? [y/N] ", i+1, s.title); err != nil {
		return err
	}
	typed, err := o.readLine(ctx)
	switch {
	case ctx.Err() != nil:
		return exit.Interruptedf("interrupted before step %d; go on with %s", i+1, o.again())
	case err != nil:
		return fmt.Errorf("read the answer: %w; step %d was not done", err, i+1)
	case strings.EqualFold(typed, "y") || strings.EqualFold(typed, "yes"):
		return nil
	}
	return fmt.Errorf("stopped before step %d; go on with %s", i+1, o.again())
}

// isTerminal reports whether a person types what is read.
func isTerminal(r io.Reader) bool {
	switch in := r.(type) {
	case output.Sized:
		_, _, ok := in.TerminalSize()
		return ok
	case *os.File:
		return term.IsTerminal(int(in.Fd()))
	}
	return false
}

// readLine reads one line, or until ctx is done: a read of a terminal can't be
// interrupted, so it is left behind. It reads byte by byte, as the next answer may
// be there already.
func (o *Options) readLine(ctx context.Context) (string, error) {
	type answer struct {
		text string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		var line strings.Builder
		in := bufio.NewReaderSize(oneByte{o.Streams.In}, 16)
		for {
			c, err := in.ReadByte()
			if err != nil && line.Len() == 0 {
				read <- answer{err: err}
				return
			}
			if err != nil || c == '\n' {
				read <- answer{text: strings.TrimSpace(line.String())}
				return
			}
			line.WriteByte(c)
		}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-read:
		return a.text, a.err
	}
}

// oneByte reads no further than it is asked to.
type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }
