//go:build e2e

package suite

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

func TestPausedClusterIsOnlyReportedOn(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 4)
	c := s.Cluster("c", 2, 0)
	c.Spec.Paused = true
	s.Create(c)
	s.WaitCondition("c", v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused, "paused")
	// Longer than the slowest tick.
	harness.Pause(t.Context(), 11*time.Second)
	for _, o := range ours(everything(t, s)) {
		t.Errorf("a paused cluster got %s %s", o.GetKind(), o.GetName())
	}
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = false })
	s.WaitActive("c")

	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) {
		spec.Paused = true
		spec.ReplicasPerShard = 1
	})
	s.Eventually("the manager reports that the Active cluster is paused", time.Minute, func() error {
		c := s.Get("c")
		if c.Status.ObservedGeneration != c.Generation || c.Status.State != v1alpha1.StateActive {
			return fmt.Errorf("generation %d of %d, %s", c.Status.ObservedGeneration, c.Generation, c.Status.State)
		}
		if got := harness.Condition(c, v1alpha1.ConditionProgressing); got.Reason != v1alpha1.ReasonPaused {
			return fmt.Errorf("Progressing: %s: %s", got.Reason, got.Message)
		}
		return nil
	})
	harness.Pause(t.Context(), 11*time.Second)
	if n := len(s.Nodes("c")); n != 2 {
		t.Errorf("a paused cluster went from 2 to %d nodes", n)
	}
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = false })
	s.WaitActive("c")
	s.WaitFormed("c", 2, 1)
}
