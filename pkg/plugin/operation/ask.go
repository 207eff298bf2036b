package operation

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

// Patch writes the difference that change makes to the cluster.
func (o *Options) Patch(ctx context.Context, c *v1alpha1.ValkeyCluster, change func(*v1alpha1.ValkeyCluster)) error {
	if o.DryRun == DryRunClient {
		change(c)
		return nil
	}
	var opts []client.PatchOption
	if o.DryRun == DryRunServer {
		opts = append(opts, client.DryRunAll)
	}
	return o.patch(ctx, c, change, opts...)
}

func (o *Options) patch(ctx context.Context, c *v1alpha1.ValkeyCluster, change func(*v1alpha1.ValkeyCluster), opts ...client.PatchOption) error {
	before := c.DeepCopy()
	change(c)
	err := o.Client.Patch(ctx, c, client.MergeFrom(before), opts...)
	if err != nil && ctx.Err() != nil {
		return exit.Interruptedf("interrupted before the API server answered; see what became of it with: %s", o.Access.Command("valkey status "+o.Name, o.Namespace))
	}
	return kube.Explain(err, kube.Request{Verb: "patch", Resource: "valkeyclusters", Namespace: o.Namespace})
}

// Unasked returns an error if a request of the verb is under way already: a second
// one would take its place, and nobody would hear of the first again.
func (o *Options) Unasked(c *v1alpha1.ValkeyCluster, verb string) error {
	r, open := request.Open(c, verb)
	if !open {
		return nil
	}
	state := "the manager has not answered it yet"
	if a, answered := r.Answer(c); answered && a.Message != "" {
		state = a.Message
	}
	return fmt.Errorf("the %s of cluster %s is asked for already (request %s): %s; follow it with %s, or take it back with %s",
		request.Noun(verb), o.Name, r.Value(), state, o.StatusCommand(), o.takeBackCommand(verb))
}

// takeBackCommand is the command line that removes a request.
func (o *Options) takeBackCommand(verb string) string {
	return o.Access.Command(fmt.Sprintf("annotate valkeycluster %s %s-", o.Name, request.Key(verb)), o.Namespace)
}

// NewID returns an ID for a request.
func (o *Options) NewID() (string, error) { return request.NewID(o.Random) }

// Ask writes a request, and waits for the answer if it is to. Done is the
// participle of what was asked for.
func (o *Options) Ask(ctx context.Context, c *v1alpha1.ValkeyCluster, r request.Request) error {
	err := o.Patch(ctx, c, func(c *v1alpha1.ValkeyCluster) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[request.Key(r.Verb)] = r.Value()
	})
	if err != nil {
		return err
	}
	result := Result{Namespace: o.Namespace, Name: o.Name, Operation: r.Verb, ID: r.ID, State: StateAsked}
	if o.DryRun == DryRunNone {
		result.Message = "follow it with " + o.StatusCommand()
	}
	if !o.Wait {
		return o.Print(result, request.Noun(r.Verb)+" requested")
	}
	return o.await(ctx, r, result)
}

// ServerTime returns what the API server's clock says, to the second: nodes carry
// its dates, and the clock of whoever runs the command may be wrong. A change that
// is only tried tells it, by the date that the server gives to who wrote fields.
func (o *Options) ServerTime(ctx context.Context, c *v1alpha1.ValkeyCluster, verb string) (time.Time, error) {
	now := o.Clock.Now().Truncate(time.Second)
	if o.DryRun == DryRunClient {
		return now, nil
	}
	tried := c.DeepCopy()
	err := o.patch(ctx, tried, func(c *v1alpha1.ValkeyCluster) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[request.Key(verb)] = "? " + now.UTC().Format(time.RFC3339Nano)
	}, client.DryRunAll)
	if err != nil {
		return time.Time{}, err
	}
	for _, f := range tried.ManagedFields {
		if f.Manager == kube.FieldManager && f.Subresource == "" && f.Time != nil {
			return f.Time.Time, nil
		}
	}
	return now, nil
}
