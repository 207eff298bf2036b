package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterState is the coarse state of a cluster.
// +kubebuilder:validation:Enum=Creating;Active;Updating;Invalid
type ClusterState string

// Values of ClusterState.
const (
	// StateCreating works towards the topology of status.targetSpec.
	StateCreating ClusterState = "Creating"
	// StateActive was complete once; conditions say how it is now.
	StateActive ClusterState = "Active"
	// StateUpdating is reserved.
	StateUpdating ClusterState = "Updating"
	// StateInvalid means that the TLS Secret can't be used; status.message says
	// why, and nothing is changed until it can.
	StateInvalid ClusterState = "Invalid"
)

// ValkeyClusterStatus is what the manager knows of a cluster.
type ValkeyClusterStatus struct {
	// State of the cluster.
	// +optional
	State ClusterState `json:"state,omitempty"`
	// Message explains State in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// ObservedGeneration is the generation that the rest of the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Ready, Progressing, Degraded, ConfigResolved, TLSReady,
	// ACLApplied, ExternalAccessReady.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// TargetSpec is the topology that creation works towards; edits made
	// meanwhile are applied afterwards.
	// +optional
	TargetSpec *TargetTopology `json:"targetSpec,omitempty"`
	// Topology is the shape that the cluster was last complete in. What is missing
	// of it was lost; what the spec asks for beyond it is growth.
	// +optional
	Topology *TargetTopology `json:"topology,omitempty"`
	// Nodes are the names of the cluster's pods, sorted.
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`
	// Shards of the cluster, by index.
	// +optional
	// +listType=map
	// +listMapKey=index
	Shards []ShardStatus `json:"shards,omitempty"`
	// ShardCount is the number of shards that own slots.
	// +optional
	ShardCount int32 `json:"shardCount,omitempty"`
	// ReadyShards is the number of shards with a primary and all replicas in sync.
	// +optional
	ReadyShards int32 `json:"readyShards,omitempty"`
	// Ready counts nodes in sync of nodes wished, for example 5/6.
	// +optional
	Ready string `json:"ready,omitempty"`
	// Endpoint is the address of the cluster inside Kubernetes.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// Requests answers the operations that the plugin asked for.
	// +optional
	// +listType=map
	// +listMapKey=verb
	Requests []RequestStatus `json:"requests,omitempty"`
	// TLS says which certificate nodes serve.
	// +optional
	TLS *TLSStatus `json:"tls,omitempty"`
	// ExternalEndpoints lists what is announced outside Kubernetes.
	// +optional
	// +listType=map
	// +listMapKey=shardIndex
	ExternalEndpoints []ExternalEndpoint `json:"externalEndpoints,omitempty"`
}

// TargetTopology is the shape of a cluster.
type TargetTopology struct {
	// Shards wished.
	Shards int32 `json:"shards"`
	// ReplicasPerShard wished.
	ReplicasPerShard int32 `json:"replicasPerShard"`
}

// ShardStatus describes one shard.
type ShardStatus struct {
	// Index of the shard, from 0.
	Index int32 `json:"index"`
	// Primary is the pod that owns the shard's slots.
	// +optional
	Primary string `json:"primary,omitempty"`
	// Replicas are the pods that follow the primary, sorted.
	// +optional
	// +listType=atomic
	Replicas []string `json:"replicas,omitempty"`
	// Slots in ranges, for example 0-5460.
	// +optional
	Slots string `json:"slots,omitempty"`
	// SlotCount is the number of slots.
	// +optional
	SlotCount int32 `json:"slotCount,omitempty"`
}

// RequestStatus answers one request annotation.
type RequestStatus struct {
	// Verb of the request, for example failover.
	Verb string `json:"verb"`
	// ID of the request that is answered.
	ID string `json:"id"`
	// State is Running, Done or Failed.
	// +kubebuilder:validation:Enum=Running;Done;Failed
	State string `json:"state"`
	// Message explains the state.
	// +optional
	Message string `json:"message,omitempty"`
}

// TLSStatus is about the leaf certificate of the referenced Secret.
type TLSStatus struct {
	// Fingerprint is the SHA-256 of the leaf in lower-case hex.
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// NotAfter is when the leaf expires.
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
	// Nodes that serve the leaf, sorted.
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`
	// Warnings about the Secret that keep nobody from using it.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
}

// ExternalEndpoint is how one shard is reached from outside Kubernetes.
type ExternalEndpoint struct {
	// ShardIndex of the shard.
	ShardIndex int32 `json:"shardIndex"`
	// Service that exposes the shard.
	// +optional
	Service string `json:"service,omitempty"`
	// Hostname of the shard, if a domain is set.
	// +optional
	Hostname string `json:"hostname,omitempty"`
	// Ports that are announced, by node index.
	// +optional
	// +listType=atomic
	Ports []int32 `json:"ports,omitempty"`
	// NodePorts that Kubernetes allocated, by node index.
	// +optional
	// +listType=atomic
	NodePorts []int32 `json:"nodePorts,omitempty"`
	// Addresses of the load balancer or gateway.
	// +optional
	// +listType=atomic
	Addresses []string `json:"addresses,omitempty"`
}
