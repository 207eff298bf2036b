package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/feed"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/progress"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

// silence is how long a request may stay without an answer before it is likelier
// that no manager runs than that it is busy: it looks at every cluster several
// times within it.
const silence = 30 * time.Second

// await shows how a request proceeds until it is answered for good.
func (o *Options) await(ctx context.Context, r request.Request, result Result) error {
	if o.Output == output.Text {
		if err := o.Print(result, request.Noun(r.Verb)+" requested"); err != nil {
			return err
		}
	}
	w := o.progressStream()
	reporter := progress.New(w, o.progressTerminal(w), o.Clock)
	a, err := o.answer(ctx, r, reporter)
	reporter.Done()
	if err != nil {
		return err
	}
	result.State, result.Message = a.State, output.Clean(a.Message)
	if o.Output != output.Text {
		if err := o.Print(result, r.Verb); err != nil {
			return err
		}
	} else if a.State == request.Done {
		if _, err := fmt.Fprintln(w, o.done(r, result.Message, reporter.Elapsed())); err != nil {
			return err
		}
	}
	if a.State != request.Done {
		return fmt.Errorf("the %s of cluster %s failed: %s", request.Noun(r.Verb), o.Name, result.Message)
	}
	return nil
}

// done is the sentence at the end of a wait.
func (o *Options) done(r request.Request, message string, elapsed time.Duration) string {
	text := fmt.Sprintf("The %s of cluster %s is done after %s", request.Noun(r.Verb), o.Name, elapsed)
	if message != "" {
		text += ": " + message
	}
	return text + "."
}

// progressStream is where people look while a program, if any, reads stdout.
func (o *Options) progressStream() io.Writer {
	if o.Output != output.Text {
		return o.Streams.ErrOut
	}
	return o.Streams.Out
}

// progressTerminal is no terminal unless stdout is one too: with stdout in a pipe,
// a person reads both in a file.
func (o *Options) progressTerminal(w io.Writer) output.Terminal {
	if !o.Flags.Terminal(o.Streams.Out).IsTerminal() {
		return o.Flags.Terminal(o.Streams.Out)
	}
	return o.Flags.Terminal(w)
}

// answer waits for the last answer to a request.
func (o *Options) answer(ctx context.Context, r request.Request, reporter *progress.Reporter) (v1alpha1.RequestStatus, error) {
	none := v1alpha1.RequestStatus{}
	// A server that doesn't answer must not outlast the timeout.
	waitCtx, stop := context.WithTimeout(ctx, o.Timeout)
	defer stop()
	set, err := feed.Start(waitCtx, o.Client, o.Clock, feed.Source{
		List: &v1alpha1.ValkeyClusterList{}, Resource: "valkeyclusters", Options: []client.ListOption{
			client.InNamespace(o.Namespace),
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", o.Name)},
		},
	})
	if err != nil {
		return none, err
	}
	ticker := o.Clock.NewTicker(time.Second)
	defer ticker.Stop()
	start := o.Clock.Now()
	var c *v1alpha1.ValkeyCluster
	last := "nothing is known yet"
	for {
		select {
		case <-ctx.Done():
			return none, exit.Interruptedf("interrupted; the request stays: follow it with %s, or take it back with %s", o.StatusCommand(), o.takeBackCommand(r.Verb))
		case <-waitCtx.Done():
			if ctx.Err() != nil {
				continue
			}
			return none, exit.Timeoutf("the %s of cluster %s is not done after %s: %s; the request stays: follow it with %s, or take it back with %s",
				request.Noun(r.Verb), o.Name, o.Timeout, last, o.StatusCommand(), o.takeBackCommand(r.Verb))
		case <-ticker.C():
			// Nobody is asked; but that nothing happens says something too.
			if c != nil {
				last = state(c, r, o.Clock.Since(start))
			}
			reporter.Update(last)
			continue
		case <-set.Changed():
		}
		next := &v1alpha1.ValkeyCluster{}
		err := kube.Get(waitCtx, set, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, next, "valkeyclusters")
		switch {
		case err == nil:
			if a, over, err := verdict(next, r); over || err != nil {
				return a, err
			}
			c, last = next, state(next, r, o.Clock.Since(start))
		case waitCtx.Err() != nil:
			continue // handled above
		case apierrors.IsNotFound(err):
			return none, fmt.Errorf("cluster %s in namespace %s was deleted before the %s was done", o.Name, o.Namespace, request.Noun(r.Verb))
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return none, fmt.Errorf("the %s was asked for, but can't be waited for: %w", request.Noun(r.Verb), err)
		default:
			c, last = nil, output.Clean(err.Error())
		}
		reporter.Update(last)
	}
}

// verdict reports whether a request was answered for good. It fails when another
// request is in its place, so that none will come.
func verdict(c *v1alpha1.ValkeyCluster, r request.Request) (a v1alpha1.RequestStatus, over bool, err error) {
	if a, answered := r.Answer(c); answered && a.State != request.Running {
		return a, true, nil
	}
	for _, other := range request.Of(c) {
		if other.Verb != r.Verb {
			continue
		}
		if other.ID != r.ID {
			return a, false, fmt.Errorf("somebody else asked for another %s meanwhile (request %s), which took the place of this one", request.Noun(r.Verb), other.Value())
		}
		return a, false, nil
	}
	return a, false, errors.New("the request was taken back before the manager answered it")
}

// state is how far a request has come, in one line.
func state(c *v1alpha1.ValkeyCluster, r request.Request, waited time.Duration) string {
	a, answered := r.Answer(c)
	next := output.Clean(inspect.NextAction(c))
	switch {
	case answered && next != "" && a.Message != "" && a.Message != next && a.Message != "waiting: "+next:
		return output.Clean(a.Message) + "; now: " + next
	case answered:
		return output.Clean(orElse(a.Message, "it is under way"))
	case waited > silence:
		return fmt.Sprintf("no manager seems to be at work: it has not answered for over %s; check with: kubectl get deployment %s -n %s",
			silence, kube.ManagerDeployment, kube.ManagerNamespace)
	}
	return "the manager has not answered yet"
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
