//go:build api

package validation

import (
	"fmt"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

func TestKubectlScalesShards(t *testing.T) {
	cluster := &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t), Name: "cache"},
		Spec:       v1alpha1.ValkeyClusterSpec{ConfigRef: "standard", Shards: 3},
	}
	if err := server.Client.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Status.ShardCount = 3
	if err := server.Client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	scale := func(replicas string) error {
		r := server.Kubectl(t, "scale", "-n", cluster.Namespace, "vkc/cache", "--replicas="+replicas)
		if r.Err != nil {
			return fmt.Errorf("%w: %s", r.Err, r.Stderr)
		}
		return nil
	}

	expect(t, scale("5"), nil)
	got := &autoscalingv1.Scale{}
	if err := server.Client.SubResource("scale").Get(t.Context(), cluster, got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Replicas != 5 || got.Status.Replicas != 3 {
		t.Errorf("scale is %d wished, %d there; want 5 shards wished, 3 there", got.Spec.Replicas, got.Status.Replicas)
	}
	expect(t, scale("0"), refused("spec.shards", "greater than or equal to 1"))
	expect(t, scale("1001"), refused("spec.shards", "less than or equal to 1000"))
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.Spec.Shards != 5 {
		t.Errorf("the cluster has %d shards, want 5", cluster.Spec.Shards)
	}
}

func TestKubectlShowsTheColumnsOfEachKind(t *testing.T) {
	for kind, want := range map[string]struct{ resource, columns string }{
		"ValkeyCluster": {"vkc", "NAME CONFIG SHARDS REPLICAS STATE READY AGE"},
		"ValkeyNode":    {"vkn", "NAME CLUSTER SHARD ROLE LIFECYCLE READY AGE"},
		"ValkeyConfig":  {"vkcfg", "NAME IMAGE BASE CPU MEMORY AGE"},
		"ValkeyImage":   {"vki", "NAME REPOSITORY TAG VERSION AGE"},
		"ValkeyRole":    {"vkr", "NAME AGE"},
	} {
		t.Run(kind, func(t *testing.T) {
			o := created(t, kind, `{}`)
			table := server.MustKubectl(t, "get", want.resource, o.GetName(), "-n", namespaceOf(o))
			header, _, _ := strings.Cut(table, "\n")
			if got := strings.Join(strings.Fields(header), " "); got != want.columns {
				t.Errorf("columns are %q, want %q", got, want.columns)
			}
		})
	}
}

func TestKubectlListsEveryKindOfTheCategory(t *testing.T) {
	for kind := range base {
		created(t, kind, `{}`)
	}
	got := server.MustKubectl(t, "get", "valkey", "-A", "-o", "name")
	for _, resource := range []string{"valkeycluster.", "valkeynode.", "valkeyconfig.", "valkeyimage.", "valkeyrole."} {
		if !strings.Contains(got, resource) {
			t.Errorf("'kubectl get valkey' lists no %s", resource)
		}
	}
}

// created is an object that the API server has accepted, in a namespace of its
// own if its kind is namespaced.
func created(t *testing.T, kind, overlay string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, kind, server.Namespace(t), overlay)
	if err := create(t, o); err != nil {
		t.Fatalf("create a %s: %v", kind, err)
	}
	return o
}

func namespaceOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return "default"
	}
	return o.GetNamespace()
}
