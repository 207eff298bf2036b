package objects

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Keys of the ConfigMaps, and so names of the mounted files.
const (
	// ConfigFile is the key of a node's ConfigMap.
	ConfigFile = "valkey.conf"
	// ACLFile is the key of a cluster's ACL ConfigMap.
	ACLFile = "users.acl"
)

// ACLConfigMap holds the rendered users.acl, which has hashes, never passwords.
func ACLConfigMap(cluster *v1alpha1.ValkeyCluster, file string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: clusterMeta(cluster, ACLConfigMapName(cluster.Name), Labels(cluster.Name)),
		Data:       map[string]string{ACLFile: file},
	}
}

// NodeConfigMap holds the rendered valkey.conf of one node.
func NodeConfigMap(node *v1alpha1.ValkeyNode, conf string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: nodeMeta(node, NodeConfigMapName(node.Name), ShardLabels(node.Spec.ClusterName, node.Spec.ShardIndex)),
		Data:       map[string]string{ConfigFile: conf},
	}
}
