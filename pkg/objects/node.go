package objects

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// NodeInput is what a new node takes from the resolved config and from its place
// in the cluster. Placement, TLS and external access come from the cluster.
type NodeInput struct {
	// Name of the node: <cluster>-<5 hex digits>.
	Name string
	// JoinType is one of v1alpha1.Join….
	JoinType string
	// ShardIndex and NodeIndex say which place the node takes.
	ShardIndex, NodeIndex int32
	// PreferredZone is where the node's predecessor ran; empty for none.
	PreferredZone string

	// Image is the full reference.
	Image string
	// PullSecrets of the image.
	PullSecrets []string
	// CPU and Memory are request and limit; nil for none.
	CPU, Memory *resource.Quantity
	// Settings are the user's directives.
	Settings map[string]string
}

// Node is a new, joining node.
func Node(cluster *v1alpha1.ValkeyCluster, in NodeInput) *v1alpha1.ValkeyNode {
	labels := ShardLabels(cluster.Name, in.ShardIndex)
	labels[v1alpha1.LabelJoinType] = in.JoinType
	node := &v1alpha1.ValkeyNode{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ValkeyNode"},
		ObjectMeta: clusterMeta(cluster, in.Name, labels),
		Spec: v1alpha1.ValkeyNodeSpec{
			ClusterName:      cluster.Name,
			Image:            in.Image,
			ImagePullSecrets: in.PullSecrets,
			CPU:              in.CPU,
			Memory:           in.Memory,
			ValkeySettings:   settingValues(in.Settings),
			ShardIndex:       in.ShardIndex,
			NodeIndex:        in.NodeIndex,
			Placement:        cluster.Spec.Placement.DeepCopy(),
			PreferredZone:    in.PreferredZone,
			External:         cluster.Spec.ExternalAccess != nil && cluster.Spec.ExternalAccess.Enabled,
			Lifecycle:        v1alpha1.LifecycleJoining,
		},
	}
	if cluster.Spec.TLS != nil {
		node.Spec.TLSSecret = TLSSecretName(cluster.Name)
	}
	return node
}

// PodWasCreated reports whether a node has had its pod, as far as its status
// tells. If so and there is no pod, the node is dead: a pod of the same name would
// be another server.
func PodWasCreated(node *v1alpha1.ValkeyNode) bool {
	return node.Status.PodIP != "" || node.Status.NodeID != "" ||
		meta.IsStatusConditionTrue(node.Status.Conditions, v1alpha1.ConditionPodCreated)
}

func settingValues(settings map[string]string) map[string]v1alpha1.SettingValue {
	if len(settings) == 0 {
		return nil
	}
	values := make(map[string]v1alpha1.SettingValue, len(settings))
	for key, value := range settings {
		values[key] = v1alpha1.SettingValue(value)
	}
	return values
}
