package inspect

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// AwaitedCopies says which nodes the manager waits for because only they may still
// hold the data of a shard, and what can be done; empty for none.
func AwaitedCopies(c *v1alpha1.ValkeyCluster) string {
	d := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionDegraded)
	if d == nil || d.Status != metav1.ConditionTrue || d.Reason != v1alpha1.ReasonCopiesAwaited {
		return ""
	}
	return output.Clean(d.Message)
}

// DataLoss says which slots lost their data, until that is acknowledged; empty for
// none.
func DataLoss(c *v1alpha1.ValkeyCluster) string {
	d := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionDataLoss)
	if d == nil || d.Status != metav1.ConditionTrue {
		return ""
	}
	return output.Clean(d.Message)
}
