//go:build e2e

package suite

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

func resize(s *harness.Space, want shape) {
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) {
		spec.Shards, spec.ReplicasPerShard = want.shards, want.replicas
	})
}

// Until a slot is assigned an edit simply replaces the target: the pods have no
// place to run until then, so nothing can be assigned.
func TestEditBeforeTheFirstSlotReplacesTheTarget(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 4)
	label := "kubectl-valkey-e2e/" + s.Name
	c := s.Cluster("c", 3, 0)
	c.Spec.Placement = &v1alpha1.Placement{NodeSelector: map[string]v1alpha1.NodeLabelValue{label: "here"}}
	s.Create(c)
	waitTarget(s, shape{3, 0}, 3)
	for _, want := range []shape{{4, 0}, {1, 1}, {2, 1}} {
		resize(s, want)
		waitTarget(s, want, want.nodes())
	}
	labelNodes(t, s, label)
	s.WaitActive("c")
	s.WaitFormed("c", 2, 1)
	if err := harness.Contains(s.WaitEvents("c", v1alpha1.ReasonActive, 1)[0].Message, "2 shards", "4/4"); err != nil {
		t.Error(err)
	}
}

// waitTarget waits until a cluster in the making works towards a shape and has
// exactly the pods of it.
func waitTarget(s *harness.Space, want shape, pods int) {
	s.Eventually("the target is "+want.String(), time.Minute, func() error {
		c := s.Get("c")
		target := c.Status.TargetSpec
		if target == nil || target.Shards != want.shards || target.ReplicasPerShard != want.replicas {
			return fmt.Errorf("it is %v, state %s", target, c.Status.State)
		}
		if n := len(s.Pods("c")); n != pods {
			return fmt.Errorf("there are %d pods, want %d", n, pods)
		}
		return nil
	})
}

// labelNodes gives every node a label for the time of the test.
func labelNodes(t *testing.T, s *harness.Space, label string) {
	t.Helper()
	var nodes corev1.NodeList
	if err := s.Client.List(t.Context(), &nodes); err != nil {
		t.Fatalf("list nodes: %v", err)
	}
	for _, n := range nodes.Items {
		if r := s.RunKubectl(t.Context(), "", "label", "node", n.Name, label+"=here"); r.Code != 0 {
			t.Fatal(r)
		}
		t.Cleanup(func() { s.RunKubectl(s.Background(), "", "label", "node", n.Name, label+"-") })
	}
}

// Once slots are assigned creation goes on towards its snapshot, becomes Active,
// and then the edit is applied.
func TestEditAfterTheFirstSlotIsAppliedAfterwards(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 8)
	s.Create(s.Cluster("c", 3, 1))
	s.Eventually("slots are assigned while the cluster is being created", time.Minute, func() error {
		servers, err := s.Servers("c")
		if err != nil {
			return err
		}
		for _, server := range servers {
			if !server.Self().Slots.Empty() {
				return nil
			}
		}
		return fmt.Errorf("none of %d servers owns a slot", len(servers))
	})
	resize(s, shape{4, 1})
	if c := s.Get("c"); c.Status.State != v1alpha1.StateCreating || c.Status.TargetSpec == nil || c.Status.TargetSpec.Shards != 3 {
		t.Errorf("the edit came too late to prove anything: state %s, target %v", c.Status.State, c.Status.TargetSpec)
	}
	s.WaitActive("c")
	s.WaitFormed("c", 4, 1)
	if err := harness.Contains(s.WaitEvents("c", v1alpha1.ReasonActive, 1)[0].Message, "3 shards", "6/6"); err != nil {
		t.Error(err)
	}
}

// An Active cluster takes every new shape without losing a key, and stays Active.
func TestResizeKeepsEveryKey(t *testing.T) {
	t.Parallel()
	const keys = 3000
	s := harness.Start(t).Space(t, 9)
	s.Create(s.Cluster("c", 3, 0))
	s.WaitActive("c")
	s.StartClient("")
	s.WriteKeys("c", keys)
	for _, want := range []shape{{3, 1}, {3, 0}, {4, 0}, {4, 1}, {2, 1}, {2, 0}} {
		begin := time.Now()
		resize(s, want)
		s.WaitActive("c")
		s.WaitFormed("c", int(want.shards), int(want.replicas))
		s.WantKeys("c", keys)
		checkBudgets(t, s, want)
		if n := len(s.Nodes("c")); n != want.nodes() {
			t.Errorf("%d ValkeyNodes are left of %s", n, want)
		}
		t.Logf("%s after %s", want, time.Since(begin).Round(100*time.Millisecond))
	}
	s.WaitEvents("c", v1alpha1.ReasonActive, 1)
	r := s.RunKubectl(t.Context(), "", "get", "vkc", "c", "-n", s.Name, "--subresource=scale", "-o", "jsonpath={.spec.replicas}/{.status.replicas}")
	if r.Stdout != "2/2" {
		t.Errorf("the scale subresource shows %s", r)
	}
}

// deletePod deletes a pod as a person does, with its grace period.
func deletePod(s *harness.Space, pod corev1.Pod, options ...client.DeleteOption) {
	s.Delete(&pod, options...)
}
