package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lifecycle of a node.
// +kubebuilder:validation:Enum=Joining;Active;Leaving
type Lifecycle string

// Values of Lifecycle.
const (
	// LifecycleJoining has no place in the cluster yet; its pod is created.
	LifecycleJoining Lifecycle = "Joining"
	// LifecycleActive belongs to its shard.
	LifecycleActive Lifecycle = "Active"
	// LifecycleLeaving is on its way out.
	LifecycleLeaving Lifecycle = "Leaving"
)

// ValkeyNodeSpec is everything that one node's pod and valkey.conf are made
// from. All but the lifecycle is immutable: another wish is another node. The
// rules are on the spec, as one on an optional field itself is skipped when the
// field is added or removed.
//
// +kubebuilder:validation:XValidation:rule="self.clusterName == oldSelf.clusterName",fieldPath=".clusterName",message="clusterName of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="self.image == oldSelf.image",fieldPath=".image",message="image of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="has(self.imagePullSecrets) == has(oldSelf.imagePullSecrets) && (!has(self.imagePullSecrets) || self.imagePullSecrets == oldSelf.imagePullSecrets)",fieldPath=".imagePullSecrets",message="imagePullSecrets of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="has(self.cpu) == has(oldSelf.cpu) && (!has(self.cpu) || self.cpu == oldSelf.cpu)",fieldPath=".cpu",message="cpu of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="has(self.memory) == has(oldSelf.memory) && (!has(self.memory) || self.memory == oldSelf.memory)",fieldPath=".memory",message="memory of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="has(self.valkeySettings) == has(oldSelf.valkeySettings) && (!has(self.valkeySettings) || self.valkeySettings == oldSelf.valkeySettings)",fieldPath=".valkeySettings",message="valkeySettings of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="self.shardIndex == oldSelf.shardIndex",fieldPath=".shardIndex",message="shardIndex of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="self.nodeIndex == oldSelf.nodeIndex",fieldPath=".nodeIndex",message="nodeIndex of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="has(self.tlsSecret) == has(oldSelf.tlsSecret) && (!has(self.tlsSecret) || self.tlsSecret == oldSelf.tlsSecret)",fieldPath=".tlsSecret",message="tlsSecret of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",fieldPath=".placement",message="placement of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="has(self.preferredZone) == has(oldSelf.preferredZone) && (!has(self.preferredZone) || self.preferredZone == oldSelf.preferredZone)",fieldPath=".preferredZone",message="preferredZone of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
// +kubebuilder:validation:XValidation:rule="self.?external.orValue(false) == oldSelf.?external.orValue(false)",fieldPath=".external",message="external of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig, and the manager replaces the node"
type ValkeyNodeSpec struct {
	// ClusterName is the ValkeyCluster that the node belongs to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName"`
	// Image is the full reference that the pod runs.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`
	// ImagePullSecrets of the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
	// CPU request and limit.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory request and limit.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// ValkeySettings are the user's directives of the resolved config chain;
	// what the manager forces is added when valkey.conf is rendered.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	ValkeySettings map[string]SettingValue `json:"valkeySettings,omitempty"`
	// ShardIndex of the shard that the node serves, from 0.
	// +kubebuilder:validation:Minimum=0
	ShardIndex int32 `json:"shardIndex"`
	// NodeIndex within the shard, from 0. It says nothing about the role.
	// +kubebuilder:validation:Minimum=0
	NodeIndex int32 `json:"nodeIndex"`
	// TLSSecret that the pod mounts; unset without TLS.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TLSSecret string `json:"tlsSecret,omitempty"`
	// Placement of the pod.
	// +optional
	Placement *Placement `json:"placement,omitempty"`
	// PreferredZone is where the node's predecessor ran.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PreferredZone string `json:"preferredZone,omitempty"`
	// External is whether external access was on when the node was made.
	// +optional
	External bool `json:"external,omitempty"`
	// Lifecycle is the only field that changes.
	Lifecycle Lifecycle `json:"lifecycle"`
}

// Announcement is what a node tells clients of itself.
type Announcement struct {
	// Hostname announced, empty for none.
	// +optional
	Hostname string `json:"hostname,omitempty"`
	// EndpointType that the node gives to clients.
	// +optional
	EndpointType EndpointType `json:"endpointType,omitempty"`
	// ClientPort announced, 0 for none.
	// +optional
	ClientPort int32 `json:"clientPort,omitempty"`
}

// Applied is what a running node is known to have in force.
type Applied struct {
	// Settings that were changed at run time, over the node's spec.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Settings map[string]SettingValue `json:"settings,omitempty"`
	// ACLRevision is the content hash of the ACL file in force.
	// +optional
	ACLRevision string `json:"aclRevision,omitempty"`
	// Leaf is the SHA-256 of the certificate that the node serves.
	// +optional
	Leaf string `json:"leaf,omitempty"`
	// CA is the SHA-256 of the CA bundle that the node has confirmed.
	// +optional
	CA string `json:"ca,omitempty"`
	// Announcement in force.
	// +optional
	Announcement *Announcement `json:"announcement,omitempty"`
}

// ValkeyNodeStatus is what the manager knows of one node.
type ValkeyNodeStatus struct {
	// PodIP of the node's pod.
	// +optional
	PodIP string `json:"podIP,omitempty"`
	// Host is the Kubernetes node that the pod runs on.
	// +optional
	Host string `json:"host,omitempty"`
	// NodeID is the server's own ID, 40 hex digits.
	// +optional
	NodeID string `json:"nodeID,omitempty"`
	// Role is primary or replica, as the node itself says.
	// +optional
	Role string `json:"role,omitempty"`
	// Ready is true while the node holds a full copy of its shard.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// LagBytes is how far a replica is behind its primary, in coarse steps, so that
	// it is written only when that matters: 0 for less than 1 MiB, else 1, 4, 16,
	// 64 MiB and so on, whichever is reached.
	// +optional
	LagBytes int64 `json:"lagBytes,omitempty"`
	// Applied is what the node is known to have in force.
	// +optional
	Applied *Applied `json:"applied,omitempty"`
	// Conditions of the node.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ValkeyNode is one server of a cluster. The manager makes and deletes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=vkn,categories=valkey
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Shard",type=integer,JSONPath=`.spec.shardIndex`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.status.role`
// +kubebuilder:printcolumn:name="Lifecycle",type=string,JSONPath=`.spec.lifecycle`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ValkeyNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ValkeyNodeSpec `json:"spec"`
	// +optional
	Status ValkeyNodeStatus `json:"status,omitempty"`
}

// ValkeyNodeList is a list of nodes.
//
// +kubebuilder:object:root=true
type ValkeyNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ValkeyNode `json:"items"`
}
