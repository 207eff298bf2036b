//go:build e2e

package suite

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// more memory and another shard are asked for in one apply. The manager does
// one after the other, the status says what it is at, and all data stays.
func TestMemoryAndShardsAreChangedInOneApply(t *testing.T) {
	t.Parallel()
	// Values of 8 KiB come to 48 MB, or to 600 MB.
	keys, size, memory, maxmemory := 6000, 8<<10, "128Mi", "64mb"
	if harness.Full() {
		keys, memory, maxmemory = 75_000, "640Mi", "400mb"
	}
	s := harness.Start(t).Space(t, 10)
	config := s.Name + "-config"
	both := func(memory string, shards int) string {
		return fmt.Sprintf(`
apiVersion: valkey.gomomento.com/v1alpha1
kind: ValkeyConfig
metadata: {name: %[1]s, labels: {kubectl-valkey-e2e: "true"}}
spec:
  baseRef: %[2]s
  resources: {memory: %[3]s}
  valkey: {maxmemory: %[4]s}
---
apiVersion: valkey.gomomento.com/v1alpha1
kind: ValkeyCluster
metadata: {name: c, namespace: %[5]s}
spec: {configRef: %[1]s, shards: %[6]d, replicasPerShard: 1}
`, config, harness.ConfigName, memory, maxmemory, s.Name, shards)
	}
	apply := func(manifest string) {
		t.Helper()
		if r := s.RunKubectl(t.Context(), manifest, "apply", "-f", "-"); r.Code != 0 {
			t.Fatal(r)
		}
	}
	t.Cleanup(func() { s.RunKubectl(s.Background(), "", "delete", "valkeyconfig", config) })
	apply(both(memory, 3))
	s.WaitActive("c")
	w := s.StartWriter("c", patient, "--preload", fmt.Sprint(keys), "--size", fmt.Sprint(size), "--every", "20ms")
	before := podUIDs(s)
	history := s.History()

	more := map[string]string{"128Mi": "144Mi", "640Mi": "704Mi"}[memory]
	apply(both(more, 4))
	for what, words := range map[string][]string{"the move of slots": {"slots", "shard 3"}, "the roll": {"is outdated"}} {
		s.Eventually("the status names "+what, harness.ActiveWithin, func() error {
			return history.Find(func(c *v1alpha1.ValkeyCluster) error {
				return harness.Contains(harness.Condition(c, v1alpha1.ConditionProgressing).Message, words...)
			})
		})
	}
	waitRolled(s, before)
	s.WaitActive("c")
	checkEven(t, s.WaitFormed("c", 4, 1), 4)
	if err := history.Find(func(c *v1alpha1.ValkeyCluster) error { return inTwoPlaces(c, before) }); err == nil {
		t.Error("nodes were taken out although slots were still to move")
	}
	for _, p := range s.Pods("c") {
		if got := p.Spec.Containers[0].Resources.Limits.Memory().String(); got != more {
			t.Errorf("pod %s has %s of memory, want %s", p.Name, got, more)
		}
	}
	wantSmooth(t, w, w.Stop(), longest)
}

// inTwoPlaces returns no error for a cluster that has taken out a node of those that
// were there before, although the fourth shard doesn't have its slots yet.
func inTwoPlaces(c *v1alpha1.ValkeyCluster, before map[string]types.UID) error {
	moved, left := int32(0), 0
	for _, shard := range c.Status.Shards {
		if shard.Index == 3 {
			moved = shard.SlotCount
		}
	}
	for _, name := range c.Status.Nodes {
		if _, old := before[name]; old {
			left++
		}
	}
	if left < len(before) && moved < 4096 {
		return nil
	}
	return fmt.Errorf("%d of %d nodes are left, and shard 3 has %d slots", left, len(before), moved)
}
