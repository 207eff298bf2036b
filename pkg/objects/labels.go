package objects

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// PodSelector are the labels that select every pod of a cluster. Services,
// budgets and network policies use them, so they never change.
func PodSelector(cluster string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:     v1alpha1.ApplicationName,
		v1alpha1.LabelInstance: cluster,
	}
}

// ShardSelector are the labels that select the pods of one shard.
func ShardSelector(cluster string, shard int32) map[string]string {
	labels := PodSelector(cluster)
	labels[v1alpha1.LabelShardIndex] = formatIndex(shard)
	return labels
}

// Labels are on every object of a cluster.
func Labels(cluster string) map[string]string {
	labels := PodSelector(cluster)
	labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
	return labels
}

// ShardLabels are on every object of one shard.
func ShardLabels(cluster string, shard int32) map[string]string {
	labels := Labels(cluster)
	labels[v1alpha1.LabelShardIndex] = formatIndex(shard)
	return labels
}

// ShardOf reads the shard's index from the labels of an object. The error says that the
// label is missing or no index.
func ShardOf(labels map[string]string) (int32, error) {
	shard, err := strconv.ParseInt(labels[v1alpha1.LabelShardIndex], 10, 32)
	return int32(shard), err
}

// clusterMeta is the metadata of an object that a cluster owns.
func clusterMeta(cluster *v1alpha1.ValkeyCluster, name string, labels map[string]string) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("ValkeyCluster"))
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       cluster.Namespace,
		Labels:          labels,
		OwnerReferences: []metav1.OwnerReference{*owner},
	}
}

// nodeMeta is the metadata of an object that a node owns.
func nodeMeta(node *v1alpha1.ValkeyNode, name string, labels map[string]string) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(node, v1alpha1.GroupVersion.WithKind("ValkeyNode"))
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       node.Namespace,
		Labels:          labels,
		OwnerReferences: []metav1.OwnerReference{*owner},
	}
}
