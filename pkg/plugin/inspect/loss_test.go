package inspect

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func TestALossIsToldUntilItIsAcknowledged(t *testing.T) {
	f := plugintest.Active("main", 2, 0)
	if DataLoss(f.Cluster) != "" || AwaitedCopies(f.Cluster) != "" {
		t.Error("a healthy cluster lost something")
	}
	f.Condition(v1alpha1.ConditionDataLoss, true, v1alpha1.ReasonDataLoss, "no copy of\nshard 1 is left")
	if got := DataLoss(f.Cluster); got != "no copy of shard 1 is left" {
		t.Errorf("loss %q", got)
	}
	if AtRest(*meta.FindStatusCondition(f.Cluster.Status.Conditions, v1alpha1.ConditionDataLoss)) {
		t.Error("nobody needs to read of the loss")
	}
	meta.RemoveStatusCondition(&f.Cluster.Status.Conditions, v1alpha1.ConditionDataLoss)
	if got := DataLoss(f.Cluster); got != "" {
		t.Errorf("loss %q after it was acknowledged", got)
	}
}

func TestCopiesAreAwaitedOnlyForThatReason(t *testing.T) {
	f := plugintest.Active("main", 2, 0)
	f.Condition(v1alpha1.ConditionDegraded, true, v1alpha1.ReasonNodeUnreachable, "main-3fa2c: it does not answer")
	if got := AwaitedCopies(f.Cluster); got != "" {
		t.Errorf("awaited %q", got)
	}
	f.Condition(v1alpha1.ConditionDegraded, true, v1alpha1.ReasonCopiesAwaited, "node main-3fa2c may still hold the data of shard 0")
	if got := AwaitedCopies(f.Cluster); got != "node main-3fa2c may still hold the data of shard 0" {
		t.Errorf("awaited %q", got)
	}
}
