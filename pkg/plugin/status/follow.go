package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/feed"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
)

const (
	// settle is how long changes are gathered before the status is shown again:
	// nobody reads faster, and a change of a cluster is a burst of writes.
	settle = 250 * time.Millisecond
	// growOld is how often what was seen last is shown again when nothing
	// changes, without asking anybody: ages grow, and silence is a sign.
	growOld = 10 * time.Second
)

// follow shows the status after each change, until ctx is done or the cluster is
// gone.
func (o *Options) follow(ctx context.Context) error {
	// The first look tells whether there is anything to follow.
	seen, err := o.look(ctx, o.client)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	set, err := feed.Start(ctx, o.client, o.clock, o.sources()...)
	if err != nil {
		return err
	}
	view := newView(o)
	for {
		if err := view.show(seen, o.clock.Now()); err != nil {
			return err
		}
		changed, err := o.nextChange(ctx, set)
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		next, err := o.look(ctx, set)
		switch {
		case err == nil:
			seen = next
			view.trouble = nil
		case o.name != "" && apierrors.IsNotFound(err):
			return fmt.Errorf("cluster %s in namespace %s was deleted", o.name, o.namespace)
		case errors.Is(err, context.Canceled), lasting(err):
			return err
		default:
			view.trouble = err
		}
	}
}

// nextChange waits for a change and those that come right after it. It reports
// false when only time has passed.
func (o *Options) nextChange(ctx context.Context, set *feed.Set) (bool, error) {
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-o.clock.After(growOld):
		return false, nil
	case <-set.Changed():
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-o.clock.After(settle):
		return true, nil
	}
}

// lasting errors don't pass by waiting; the feed has given up too.
func lasting(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

func (o *Options) sources() []feed.Source {
	if o.name != "" {
		return inspect.Sources(o.namespace, o.name)
	}
	return []feed.Source{{
		List: &v1alpha1.ValkeyClusterList{}, Resource: "valkeyclusters",
		Options: []client.ListOption{client.InNamespace(o.namespace)},
	}}
}
