package reach

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Member is a node with its pod.
type Member struct {
	Node *v1alpha1.ValkeyNode
	// Pod of the node, nil if it has none.
	Pod *corev1.Pod
}

// Runs reports whether the node's server may be running: the container was started
// and is not known to have ended.
func (m Member) Runs() bool {
	if m.Pod == nil || m.Pod.Status.PodIP == "" || m.Pod.Status.Phase == corev1.PodFailed || m.Pod.Status.Phase == corev1.PodSucceeded {
		return false
	}
	return slices.ContainsFunc(m.Pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
}

// Commandable reports whether the server may be told something: one that is being
// stopped gets no command any more.
func (m Member) Commandable() bool {
	return m.Runs() && m.Pod.DeletionTimestamp.IsZero() && m.Node.DeletionTimestamp.IsZero()
}

// InPlace reports whether the node belongs to its shard.
func (m Member) InPlace() bool {
	return m.Node.Spec.Lifecycle == v1alpha1.LifecycleActive && m.Node.DeletionTimestamp.IsZero()
}

// Applied is what the node is known to have in force.
func (m Member) Applied() v1alpha1.Applied {
	if m.Node.Status.Applied == nil {
		return v1alpha1.Applied{}
	}
	return *m.Node.Status.Applied
}

// Members lists the nodes that a cluster owns with their pods, by name.
func Members(ctx context.Context, reader client.Reader, cluster *v1alpha1.ValkeyCluster) ([]Member, error) {
	match := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{
		v1alpha1.LabelInstance: cluster.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
	}}
	var nodes v1alpha1.ValkeyNodeList
	if err := reader.List(ctx, &nodes, match...); err != nil {
		return nil, fmt.Errorf("list nodes of cluster %s: %w", cluster.Name, err)
	}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, match...); err != nil {
		return nil, fmt.Errorf("list pods of cluster %s: %w", cluster.Name, err)
	}
	var members []Member
	for i := range nodes.Items {
		if !metav1.IsControlledBy(&nodes.Items[i], cluster) {
			continue
		}
		m := Member{Node: &nodes.Items[i]}
		for j := range pods.Items {
			if metav1.IsControlledBy(&pods.Items[j], m.Node) {
				m.Pod = &pods.Items[j]
			}
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	return members, nil
}

// parallel bounds how many servers are spoken to at once for one cluster.
const parallel = 32

// Each calls f for every member, many at once, and returns when all are done.
func Each(members []Member, f func(Member)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, m := range members {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f(m)
		})
	}
	group.Wait()
}
