//go:build e2e

package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Births records every object of a kind that appears in the namespace, also those
// that are gone again soon.
type Births struct {
	s     *Space
	list  client.ObjectList
	older map[types.UID]bool // were there before

	mu    sync.Mutex
	names map[types.UID]string
	err   error
}

// Births begins to record. The list says which kind.
func (s *Space) Births(list client.ObjectList) *Births {
	s.t.Helper()
	b := &Births{s: s, list: list, older: map[types.UID]bool{}, names: map[types.UID]string{}}
	now, err := b.present()
	if err != nil {
		s.t.Fatal(err)
	}
	for id := range now {
		b.older[id] = true
	}
	from := list.GetResourceVersion()
	w, err := s.Client.Watch(s.t.Context(), list, client.InNamespace(s.Name),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}})
	if err != nil {
		s.t.Fatalf("watch %T: %v", list, err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer w.Stop()
		b.record(ctx, w.ResultChan())
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
	return b
}

func (b *Births) record(ctx context.Context, events <-chan watch.Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-events:
			obj, isObject := event.Object.(client.Object)
			b.mu.Lock()
			switch {
			case !ok:
				b.err = fmt.Errorf("the watch ended early")
			case !isObject:
				b.err = fmt.Errorf("the watch failed: %v", event.Object)
			case event.Type == watch.Added:
				b.names[obj.GetUID()] = obj.GetName()
			}
			b.mu.Unlock()
			if !ok || !isObject {
				return
			}
		}
	}
}

// present returns the objects that are there, by name.
func (b *Births) present() (map[types.UID]string, error) {
	if err := b.s.Client.List(b.s.t.Context(), b.list, client.InNamespace(b.s.Name)); err != nil {
		return nil, fmt.Errorf("list %T: %w", b.list, err)
	}
	names := map[types.UID]string{}
	err := meta.EachListItem(b.list, func(o runtime.Object) error {
		obj, err := meta.Accessor(o)
		if err == nil {
			names[obj.GetUID()] = obj.GetName()
		}
		return err
	})
	return names, err
}

// caughtUp returns an error until the record has whatever is there now.
func (b *Births) caughtUp() error {
	now, err := b.present()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	for id, name := range now {
		if _, seen := b.names[id]; !seen && !b.older[id] {
			return fmt.Errorf("%s has not been announced yet", name)
		}
	}
	return nil
}

// Want returns an error unless n objects have appeared.
func (b *Births) Want(n int) error {
	if err := until(b.s.t.Context(), time.Minute, b.caughtUp); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.names) != n {
		return fmt.Errorf("%d objects have appeared, want %d: %s", len(b.names), n, strings.Join(slices.Sorted(maps.Values(b.names)), ", "))
	}
	return nil
}
