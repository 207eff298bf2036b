//go:build e2e

package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Births records every object of a kind that appears in the namespace, also those
// that are gone again soon.
type Births struct {
	mu    sync.Mutex
	names map[types.UID]string
	err   error
}

// Births begins to record. The list says which kind.
func (s *Space) Births(list client.ObjectList) *Births {
	s.t.Helper()
	b := &Births{names: map[types.UID]string{}}
	if err := s.Client.List(s.t.Context(), list, client.InNamespace(s.Name)); err != nil {
		s.t.Fatalf("list %T: %v", list, err)
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

// Want returns an error unless n objects have appeared.
func (b *Births) Want(n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	if len(b.names) != n {
		return fmt.Errorf("%d objects have appeared, want %d: %s", len(b.names), n, strings.Join(slices.Sorted(maps.Values(b.names)), ", "))
	}
	return nil
}
