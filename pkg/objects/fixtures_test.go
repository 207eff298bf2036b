package objects_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

var update = flag.Bool("update", false, "write golden files anew")

// golden compares an object with the file of that name under testdata.
func golden(t *testing.T, name string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	file := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatalf("write golden file: %v", err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read golden file (go test -update makes it): %v", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); go test -update writes it anew:\n%s", file, diff)
	}
}

func cluster() *v1alpha1.ValkeyCluster {
	return &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "my-app", Name: "my-cluster", UID: "11111111-2222-3333-4444-555555555555"},
		Spec:       v1alpha1.ValkeyClusterSpec{ConfigRef: "small", Shards: 3, ReplicasPerShard: 1},
	}
}

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func nodeInput() objects.NodeInput {
	return objects.NodeInput{
		Name:       "my-cluster-0a1b2",
		JoinType:   v1alpha1.JoinShard,
		ShardIndex: 1,
		NodeIndex:  0,
		Image:      "valkey/valkey:9.1.2",
		CPU:        quantity("500m"),
		Memory:     quantity("1Gi"),
		Settings:   map[string]string{"maxmemory": "800mb", "maxmemory-policy": "allkeys-lru"},
	}
}

// node is a node of the cluster as the API server returns it.
func node(c *v1alpha1.ValkeyCluster, in objects.NodeInput) *v1alpha1.ValkeyNode {
	n := objects.Node(c, in)
	n.UID = "99999999-8888-7777-6666-555555555555"
	return n
}
