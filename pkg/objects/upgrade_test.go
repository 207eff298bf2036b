package objects_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// wishes are clusters with what their config comes to.
func wishes() map[string]func(*v1alpha1.ValkeyCluster, *objects.NodeInput) {
	return map[string]func(*v1alpha1.ValkeyCluster, *objects.NodeInput){
		"plain": func(*v1alpha1.ValkeyCluster, *objects.NodeInput) {},
		"least": func(_ *v1alpha1.ValkeyCluster, in *objects.NodeInput) { in.CPU, in.Memory, in.Settings = nil, nil, nil },
		"placed": func(c *v1alpha1.ValkeyCluster, _ *objects.NodeInput) {
			c.Spec.Placement = &v1alpha1.Placement{
				Zones: []string{"a", "b", "c"}, ZoneSpread: v1alpha1.ZoneSpreadRequired,
				NodeSelector: map[string]v1alpha1.NodeLabelValue{"pool": "valkey"}, PriorityClassName: "high",
				Tolerations: []corev1.Toleration{{Key: "dedicated", Value: "valkey", Effect: corev1.TaintEffectNoSchedule}},
			}
		},
		"encrypted": func(c *v1alpha1.ValkeyCluster, in *objects.NodeInput) {
			c.Spec.TLS = &v1alpha1.TLS{SecretRef: "my-tls"}
			in.PullSecrets = []string{"registry"}
		},
		"external": func(c *v1alpha1.ValkeyCluster, _ *objects.NodeInput) {
			c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true}
		},
		"settings": func(_ *v1alpha1.ValkeyCluster, in *objects.NodeInput) {
			in.Settings = map[string]string{"maxmemory": "1610612736", "io-threads": "4", "Timeout": "300", "notify-keyspace-events": "KEA", "lazyfree-lazy-expire": "yes"}
		},
	}
}

// stored is a node as a released manager made it.
type stored struct {
	Node *v1alpha1.ValkeyNode `json:"node"`
	// Generation is the label that its pod has.
	Generation string `json:"generation"`
}

// U-02: nodes that an older manager made are as wished, and later replacements are
// spread against their pods. The files under testdata/released are what managers in
// use have made: -update adds those that are missing and changes none.
func TestAnUpgradeOfTheManagerRollsNothing(t *testing.T) {
	for name, change := range wishes() {
		t.Run(name, func(t *testing.T) {
			c, in := cluster(), nodeInput()
			change(c, &in)
			wanted := objects.Node(c, in)
			file := filepath.Join("testdata", "released", name+".yaml")
			if _, err := os.Stat(file); os.IsNotExist(err) && *update {
				data, err := yaml.Marshal(stored{Node: wanted, Generation: objects.Generation(wanted.Spec)})
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; go test -update makes what is missing", err)
			}
			var was stored
			if err := yaml.UnmarshalStrict(data, &was); err != nil {
				t.Fatal(err)
			}
			if change := plan.Compare(was.Node.Spec, nil, wanted.Spec, func(string) bool { return true }); change.Replace != "" || len(change.Live) != 0 {
				t.Errorf("it is replaced: %s; set: %v", change.Replace, change.Live)
			}
			if got := objects.Generation(was.Node.Spec); got != was.Generation {
				t.Errorf("its generation is %s, the label of its pod %s", got, was.Generation)
			}
			if got := objects.Generation(wanted.Spec); got != was.Generation {
				t.Errorf("a replacement has the generation %s, the others %s", got, was.Generation)
			}
		})
	}
}
