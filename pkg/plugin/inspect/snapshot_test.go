package inspect

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// fetch reads cluster main.
func fetch(t *testing.T, r client.Reader) *Snapshot {
	t.Helper()
	s, err := Fetch(t.Context(), r, plugintest.Namespace, "main")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names[T any](items []T, name func(*T) string) []string {
	var all []string
	for i := range items {
		all = append(all, name(&items[i]))
	}
	return all
}

func TestFetchTakesOnlyWhatBelongsToTheCluster(t *testing.T) {
	f, like := plugintest.Active("main", 1, 1), plugintest.Active("main-2", 1, 1)
	f.Event("ValkeyCluster", "main", "Normal", "Active", "it is", time.Minute)
	f.Event("Pod", "main-00abc", "Warning", "Failed", "a former pod", time.Minute)
	like.Event("ValkeyCluster", "main-2", "Normal", "Active", "it is", time.Minute)
	like.Event("Pod", "main-2-00abc", "Warning", "Failed", "a former pod", time.Minute)
	like.Event("Pod", "main-frontend", "Warning", "Failed", "somebody else's", time.Minute)
	s := fetch(t, plugintest.Client(append(f.Objects(), like.Objects()...)...))

	wantNodes := []string{f.Nodes[0].Name, f.Nodes[1].Name}
	if diff := cmp.Diff(wantNodes, names(s.Nodes.Items, func(n *v1alpha1.ValkeyNode) string { return n.Name })); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantNodes, names(s.Pods.Items, func(p *corev1.Pod) string { return p.Name })); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"main-00abc", "main"}, names(s.Events.Items, func(e *corev1.Event) string { return e.InvolvedObject.Name })); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestFetchOfAMissingClusterListsWhatExists(t *testing.T) {
	c := plugintest.Client(append(plugintest.Active("main", 1, 0).Objects(), plugintest.Active("cache", 1, 0).Objects()...)...)
	_, err := Fetch(t.Context(), c, plugintest.Namespace, "mian")
	if want := `cluster "mian" not found in namespace team-a: it has cache, main`; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	if !apierrors.IsNotFound(err) {
		t.Error("the error is no longer a NotFound")
	}
	_, err = Fetch(t.Context(), c, "team-b", "main")
	if err == nil || !strings.Contains(err.Error(), "there is none in it") {
		t.Errorf("error = %v, want that namespace team-b has none", err)
	}
}

// denying refuses lists of a kind.
func denying(c client.WithWatch, kinds ...string) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			resource := strings.ToLower(strings.TrimSuffix(gvk.Kind, "List")) + "s"
			for _, k := range kinds {
				if k == resource {
					return plugintest.Forbidden("list", resource, plugintest.Namespace)
				}
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				for _, k := range kinds {
					if k == "configmaps" {
						return plugintest.Forbidden("get", k, plugintest.Namespace)
					}
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}

func TestEachPartCarriesItsOwnError(t *testing.T) {
	c := denying(plugintest.Client(plugintest.Active("main", 1, 1).Objects()...), "pods", "events")
	s := fetch(t, c)
	if s.Nodes.Err != nil || len(s.Nodes.Items) != 2 {
		t.Errorf("nodes = %d, %v, want both", len(s.Nodes.Items), s.Nodes.Err)
	}
	if want := "pods can't be read: needs list pods in namespace team-a"; s.Pods.Err == nil || s.Pods.Err.Error() != want {
		t.Errorf("pods: %v, want %s", s.Pods.Err, want)
	}
	if s.Events.Err == nil {
		t.Error("events: no error")
	}
	for _, n := range s.NodeList() {
		if n.Pod != nil || n.Problem != "" || n.Role == RoleUnknown {
			t.Errorf("node %s = %+v, want its role, no pod and no problem", n.Name, n)
		}
	}
}
