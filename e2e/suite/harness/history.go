//go:build e2e

package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// History is every version of the clusters of a namespace since it was begun: what
// passes quickly is not missed.
type History struct {
	mu       sync.Mutex
	versions []v1alpha1.ValkeyCluster
	err      error
}

// History begins to record.
func (s *Space) History() *History {
	s.t.Helper()
	list := &v1alpha1.ValkeyClusterList{}
	if err := s.Client.List(s.t.Context(), list, client.InNamespace(s.Name)); err != nil {
		s.t.Fatalf("list clusters: %v", err)
	}
	w, err := s.Client.Watch(s.t.Context(), list, client.InNamespace(s.Name),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		s.t.Fatalf("watch clusters: %v", err)
	}
	h := &History{}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer w.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, ok := <-w.ResultChan():
				c, isCluster := event.Object.(*v1alpha1.ValkeyCluster)
				h.mu.Lock()
				if isCluster {
					h.versions = append(h.versions, *c)
				} else {
					h.err = errors.New("the watch of the clusters ended early")
				}
				h.mu.Unlock()
				if !ok || !isCluster {
					return
				}
			}
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
	return h
}

// Find returns an error unless some version passes the check; the error is that of
// the latest.
func (h *History) Find(check func(*v1alpha1.ValkeyCluster) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return h.err
	}
	err := errors.New("nothing has changed yet")
	for i := range h.versions {
		if err = check(&h.versions[i]); err == nil {
			return nil
		}
	}
	return fmt.Errorf("none of %d versions: %w", len(h.versions), err)
}
