package inspect

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func TestNodesAreShownFromWhatCanBeRead(t *testing.T) {
	f := plugintest.Active("main", 1, 1)
	want := []Node{{Name: f.Nodes[0].Name, Role: "primary"}, {Name: f.Nodes[1].Name, Role: "replica"}}
	for _, denied := range [][]string{{"valkeynodes"}, {"valkeynodes", "pods"}} {
		var got []Node
		for _, n := range fetch(t, denying(plugintest.Client(f.Objects()...), denied...)).NodeList() {
			got = append(got, Node{Name: n.Name, Role: n.Role})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("without %v (-want +got):\n%s", denied, diff)
		}
	}
}

func TestZonesOfNodesAreReadOnlyWhenPodsDontTell(t *testing.T) {
	f := plugintest.Active("main", 1, 0)
	asked := 0
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", Labels: map[string]string{corev1.LabelTopologyZone: "zone-a"}}}
	zone := func(scope Scope) string {
		asked = 0
		c := interceptor.NewClient(plugintest.Client(append(f.Objects(), node)...), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*corev1.NodeList); ok {
					asked++
				}
				return c.List(ctx, list, opts...)
			},
		})
		s := fetch(t, c)
		s.Surroundings(t.Context(), c, scope)
		return s.NodeList()[0].Zone
	}
	if got := zone(ClusterWide); got != "a" || asked != 0 {
		t.Errorf("labelled pod: zone %q after %d requests, want a after none", got, asked)
	}
	delete(f.Pods[0].Labels, corev1.LabelTopologyZone)
	if got := zone(ClusterWide); got != "zone-a" || asked != 1 {
		t.Errorf("unlabelled pod: zone %q after %d requests, want zone-a after one", got, asked)
	}
	if got := zone(Namespaced); got != "" || asked != 0 {
		t.Errorf("namespaced: zone %q after %d requests, want none", got, asked)
	}
}

// P-10
func TestANodeThatIsNotReadySaysWhy(t *testing.T) {
	f := plugintest.Active("main", 1, 2)
	for _, n := range f.Nodes {
		n.Status.Ready = false
	}
	for i, c := range f.Pods[1].Status.Conditions {
		if c.Type == v1alpha1.InSyncGate {
			f.Pods[1].Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	f.Nodes[2].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodCreated, Status: metav1.ConditionFalse, Message: "quota exceeded"}}
	want := []Node{
		{Role: RoleUnknown, Problem: "it does not answer the manager"},
		{Role: "replica", Problem: "it holds no full copy of its shard yet"},
		{Role: "replica", Problem: "quota exceeded"},
	}
	var got []Node
	for _, n := range fetch(t, plugintest.Client(f.Objects()...)).NodeList() {
		got = append(got, Node{Role: n.Role, Problem: n.Problem})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}
