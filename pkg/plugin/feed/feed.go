// Package feed keeps objects as they are in the cluster, by watching, for
// commands that show what happens. It is a small client-side cache: one list and
// one watch per kind, no polling, and a kind that may not be read is an error of
// that kind alone.
package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

// Between two tries to list again after a watch ended: API servers end watches
// every few minutes, and restart now and then.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 8 * time.Second
)

// Source says which objects to follow.
type Source struct {
	// List is an empty list of the kind.
	List client.ObjectList
	// Resource is the plural name for messages, for example pods.
	Resource string
	// Options restrict the list; a namespace belongs to nearly all of them.
	Options []client.ListOption
}

// feed follows one Source.
type feed struct {
	source  Source
	client  client.WithWatch
	clock   clock.Clock
	changed func()

	// ready is closed when the first list was answered, well or badly.
	ready     chan struct{}
	readyOnce sync.Once

	mu      sync.Mutex
	objects map[client.ObjectKey]client.Object
	err     error
}

func newFeed(source Source, c client.WithWatch, clk clock.Clock, changed func()) *feed {
	return &feed{
		source: source, client: c, clock: clk, changed: changed,
		ready: make(chan struct{}), objects: map[client.ObjectKey]client.Object{},
	}
}

// run follows until ctx is done, or the objects turn out not to be readable.
func (f *feed) run(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		listed, err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			f.fail(err)
			if final(err) {
				return
			}
		}
		if listed {
			retry = firstRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-f.clock.After(retry):
		}
		retry = min(2*retry, lastRetry)
	}
}

// final errors don't pass by waiting.
func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || kube.NotInstalled(err)
}

// follow lists and then watches until the watch ends. It reports whether the
// list succeeded; a watch that ends by itself is no error.
func (f *feed) follow(ctx context.Context) (listed bool, err error) {
	list, ok := f.source.List.DeepCopyObject().(client.ObjectList)
	if !ok {
		return false, fmt.Errorf("%T is no list", f.source.List)
	}
	if err := kube.List(ctx, f.client, list, f.source.Resource, f.source.Options...); err != nil {
		return false, err
	}
	if err := f.replace(list); err != nil {
		return false, err
	}
	options := (&client.ListOptions{}).ApplyOptions(f.source.Options)
	raw := options.AsListOptions()
	raw.ResourceVersion = list.GetResourceVersion()
	w, err := f.client.Watch(ctx, f.source.List, append(f.source.Options, &client.ListOptions{Namespace: options.Namespace, Raw: raw})...)
	if err != nil {
		return true, kube.Explain(err, kube.Request{Verb: "watch", Resource: f.source.Resource, Namespace: options.Namespace})
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case e, open := <-w.ResultChan():
			if !open {
				return true, nil
			}
			if over, err := f.apply(e); over || err != nil {
				return true, err
			}
		}
	}
}

// apply takes one event of the watch, and says when the watch is over.
func (f *feed) apply(e watch.Event) (over bool, err error) {
	switch e.Type {
	case watch.Bookmark:
		return false, nil
	case watch.Error:
		err := apierrors.FromObject(e.Object)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			// No failure: the list that follows brings everything up to date.
			return true, nil
		}
		return true, fmt.Errorf("watch %s: %w", f.source.Resource, err)
	}
	obj, ok := e.Object.(client.Object)
	if !ok {
		return true, fmt.Errorf("watch %s: got a %T", f.source.Resource, e.Object)
	}
	f.mu.Lock()
	if e.Type == watch.Deleted {
		delete(f.objects, client.ObjectKeyFromObject(obj))
	} else {
		f.objects[client.ObjectKeyFromObject(obj)] = obj
	}
	f.mu.Unlock()
	f.changed()
	return false, nil
}

// replace takes what a list says.
func (f *feed) replace(list client.ObjectList) error {
	objects := map[client.ObjectKey]client.Object{}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		obj, ok := o.(client.Object)
		if !ok {
			return fmt.Errorf("list %s: got a %T", f.source.Resource, o)
		}
		objects[client.ObjectKeyFromObject(obj)] = obj
		return nil
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.objects, f.err = objects, nil
	f.mu.Unlock()
	f.announce()
	return nil
}

func (f *feed) fail(err error) {
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	f.announce()
}

func (f *feed) announce() {
	f.readyOnce.Do(func() { close(f.ready) })
	f.changed()
}

// snapshot waits for the first answer and returns copies of the objects.
func (f *feed) snapshot(ctx context.Context) ([]client.Object, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.ready:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	all := make([]client.Object, 0, len(f.objects))
	for _, o := range f.objects {
		c, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			return nil, errors.New("copy of an object is no object")
		}
		all = append(all, c)
	}
	return all, nil
}
