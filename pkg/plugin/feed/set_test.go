package feed

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
}

var podSource = Source{List: &corev1.PodList{}, Resource: "pods", Options: []client.ListOption{client.InNamespace("a")}}

func podNames(t *testing.T, r client.Reader) []string {
	t.Helper()
	var list corev1.PodList
	if err := r.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

func start(t *testing.T, c client.WithWatch, sources ...Source) *Set {
	t.Helper()
	s, err := Start(t.Context(), c, clock.RealClock{}, sources...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSetFollowsWhatHappensToItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(pod("p1"), pod("p2")).Build()
		s := start(t, c, podSource)
		if diff := cmp.Diff([]string{"p1", "p2"}, podNames(t, s)); diff != "" {
			t.Fatalf("at the start (-want +got):\n%s", diff)
		}
		synctest.Wait()
		<-s.Changed()

		steps := []struct {
			name string
			do   func() error
			want []string
		}{
			{"a new object", func() error { return c.Create(t.Context(), pod("p0")) }, []string{"p0", "p1", "p2"}},
			{"a deleted one", func() error { return c.Delete(t.Context(), pod("p1")) }, []string{"p0", "p2"}},
		}
		for _, step := range steps {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			<-s.Changed()
			if diff := cmp.Diff(step.want, podNames(t, s)); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", step.name, diff)
			}
		}

		var p corev1.Pod
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "p2"}, &p); err != nil || p.Name != "p2" {
			t.Errorf("get p2 = %q, %v", p.Name, err)
		}
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "p1"}, &p); !apierrors.IsNotFound(err) {
			t.Errorf("get a deleted pod: %v, want not found", err)
		}
	})
}

func TestSetHandsOutCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(pod("p1")).Build()
		s := start(t, c, podSource)
		var list corev1.PodList
		if err := s.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		list.Items[0].Name = "changed"
		if diff := cmp.Diff([]string{"p1"}, podNames(t, s)); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	})
}

func TestSetAsksTheServerForKindsItDoesNotFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c-acl"}}
		c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(cm).Build()
		s := start(t, c, podSource)
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(cm), &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	})
}

func TestAForbiddenKindIsAnErrorOfThatKindAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int32
		c := interceptor.NewClient(
			fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(pod("p1")).Build(),
			interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*corev1.EventList); ok {
					lists.Add(1)
					return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New(`User "u" cannot list resource "events"`))
				}
				return c.List(ctx, list, opts...)
			}})
		s := start(t, c, podSource, Source{List: &corev1.EventList{}, Resource: "events", Options: podSource.Options})
		if got := podNames(t, s); len(got) != 1 {
			t.Errorf("pods = %v, want one", got)
		}
		err := s.List(t.Context(), &corev1.EventList{})
		if err == nil || err.Error() != "events can't be read: needs list events in namespace a" {
			t.Errorf("events: %v", err)
		}
		time.Sleep(time.Hour) // the bubble's clock
		if n := lists.Load(); n != 1 {
			t.Errorf("asked %d times for what is forbidden, want 1", n)
		}
	})
}

func TestAWatchThatEndsIsStartedAgainFromAList(t *testing.T) {
	for name, end := range map[string]func(*watch.FakeWatcher){
		"closed by the server": func(w *watch.FakeWatcher) { w.Stop() },
		"too old": func(w *watch.FakeWatcher) {
			w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := watch.NewFake()
				var watches atomic.Int32
				c := interceptor.NewClient(
					fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(pod("p1")).Build(),
					interceptor.Funcs{Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
						if watches.Add(1) == 1 {
							return first, nil
						}
						return c.Watch(ctx, list, opts...)
					}})
				s := start(t, c, podSource)
				podNames(t, s)
				// Nobody tells of this pod: the first watch is a dead one.
				if err := c.Create(t.Context(), pod("p2")); err != nil {
					t.Fatal(err)
				}
				end(first)
				time.Sleep(firstRetry + time.Millisecond) // the bubble's clock
				synctest.Wait()
				if diff := cmp.Diff([]string{"p1", "p2"}, podNames(t, s)); diff != "" {
					t.Errorf("names (-want +got):\n%s", diff)
				}
				if n := watches.Load(); n != 2 {
					t.Errorf("%d watches, want 2", n)
				}
			})
		})
	}
}

func TestAnUnreachableServerIsAskedAgainAndSaidToBeUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		c := interceptor.NewClient(
			fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(pod("p1")).Build(),
			interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if down.Load() {
					return errors.New("connection refused")
				}
				return c.List(ctx, list, opts...)
			}})
		s := start(t, c, podSource)
		if err := s.List(t.Context(), &corev1.PodList{}); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("while down: %v", err)
		}
		down.Store(false)
		time.Sleep(lastRetry) // the bubble's clock
		synctest.Wait()
		if got := podNames(t, s); len(got) != 1 {
			t.Errorf("after it is back: %v, want one pod", got)
		}
	})
}
