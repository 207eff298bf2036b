package reach

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Outcome of a write.
type Outcome int

// Values of Outcome.
const (
	// Unchanged: there was nothing to write.
	Unchanged Outcome = iota
	// Written as wished.
	Written
	// Outran: somebody else wrote in between, and everything has to be looked at again.
	Outran
)

// WriteStatus changes the status of a cluster if the change changes anything. Several
// controllers write one list of conditions, each its own types, so every write is for
// the version that was read.
func WriteStatus(ctx context.Context, c client.Client, cluster *v1alpha1.ValkeyCluster, change func(*v1alpha1.ValkeyClusterStatus)) (Outcome, error) {
	next := cluster.DeepCopy()
	change(&next.Status)
	if equality.Semantic.DeepEqual(cluster.Status, next.Status) {
		return Unchanged, nil
	}
	err := c.Status().Patch(ctx, next, client.MergeFromWithOptions(cluster, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return Outran, nil
	case apierrors.IsNotFound(err):
		return Unchanged, nil
	case err != nil:
		return Unchanged, fmt.Errorf("update status: %w", err)
	}
	return Written, nil
}

// SetCondition sets one condition of a cluster as of its current generation. What it
// can't carry of a text is cut: with too much of it no status could be written.
func SetCondition(cluster *v1alpha1.ValkeyCluster, s *v1alpha1.ValkeyClusterStatus, c metav1.Condition) {
	c.ObservedGeneration, c.Message = cluster.Generation, Message(c.Message)
	meta.SetStatusCondition(&s.Conditions, c)
}

// WriteApplied notes what a node has in force if that is news.
func WriteApplied(ctx context.Context, c client.Client, node *v1alpha1.ValkeyNode, change func(*v1alpha1.Applied)) error {
	next := node.DeepCopy()
	if next.Status.Applied == nil {
		next.Status.Applied = &v1alpha1.Applied{}
	}
	change(next.Status.Applied)
	if equality.Semantic.DeepEqual(node.Status.Applied, next.Status.Applied) {
		return nil
	}
	if err := client.IgnoreNotFound(c.Status().Patch(ctx, next, client.MergeFrom(node))); err != nil {
		return fmt.Errorf("record what node %s has in force: %w", node.Name, err)
	}
	node.Status.Applied = next.Status.Applied
	return nil
}
