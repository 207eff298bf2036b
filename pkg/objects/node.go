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
			ValkeySettings:   retyped[v1alpha1.SettingValue](in.Settings),
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

// retyped returns a map whose values are strings of another type, nil if it is empty.
func retyped[To, From ~string](m map[string]From) map[string]To {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]To, len(m))
	for key, value := range m {
		out[key] = To(value)
	}
	return out
}
