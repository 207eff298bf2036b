package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxClusterNameLength keeps every derived name and label within 63 characters:
// the longest is <cluster>-<5 hex>-config.
const MaxClusterNameLength = 53

// ZoneSpread says how strictly the nodes of a shard are spread over zones.
// +kubebuilder:validation:Enum=bestEffort;required
type ZoneSpread string

// Values of ZoneSpread.
const (
	// ZoneSpreadBestEffort prefers different zones and schedules anyway.
	ZoneSpreadBestEffort ZoneSpread = "bestEffort"
	// ZoneSpreadRequired leaves a pod pending rather than break the spread.
	ZoneSpreadRequired ZoneSpread = "required"
)

// Placement says where pods may run.
type Placement struct {
	// Zones (values of topology.kubernetes.io/zone) that pods may run in; unset
	// means any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Zones []string `json:"zones,omitempty"`
	// ZoneSpread of the nodes of each shard; unset means the manager's default.
	// +optional
	ZoneSpread ZoneSpread `json:"zoneSpread,omitempty"`
	// NodeSelector that Kubernetes nodes must match.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PriorityClassName of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// TLS turns on encryption of every connection.
type TLS struct {
	// SecretRef names a Secret of type kubernetes.io/tls in the cluster's
	// namespace with tls.crt, tls.key and ca.crt.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretRef string `json:"secretRef"`
}

// ValkeyClusterSpec is the wish for one cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.tls) == has(oldSelf.tls)",message="spec.tls is fixed at creation: it can be neither added to nor removed from a running cluster; create a new cluster instead"
// +kubebuilder:validation:XValidation:rule="!has(self.externalAccess) || !has(self.externalAccess.gateway) || self.externalAccess.gateway.basePort + self.shards * (self.replicasPerShard + 1) - 1 <= 65535",message="externalAccess.gateway.basePort is too high: basePort + shards * (replicasPerShard + 1) - 1 must stay within 65535"
// +kubebuilder:validation:XValidation:rule="!has(self.externalAccess) || !has(self.externalAccess.domain) || (has(self.externalAccess.hostnamePrefix) ? size(self.externalAccess.hostnamePrefix) : 5) + size(self.externalAccess.domain) + size(string(self.shards - 1)) + 2 <= 253",message="externalAccess.domain is too long: <hostnamePrefix>-<highest shard>.<domain> must stay within 253 characters"
type ValkeyClusterSpec struct {
	// ConfigRef names a ValkeyConfig.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigRef string `json:"configRef"`
	// Shards that the 16384 slots are spread over.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Shards int32 `json:"shards"`
	// ReplicasPerShard, the primary not counted.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	ReplicasPerShard int32 `json:"replicasPerShard"`
	// ACL binds users of this cluster, beside those of its config.
	// +optional
	// +listType=map
	// +listMapKey=username
	// +kubebuilder:validation:MaxItems=64
	ACL []ACLBinding `json:"acl,omitempty"`
	// Placement of the pods.
	// +optional
	Placement *Placement `json:"placement,omitempty"`
	// TLS, if set, encrypts clients, replication and the cluster bus. Whether it
	// is set is fixed at creation; the Secret's name may change.
	// +optional
	TLS *TLS `json:"tls,omitempty"`
	// PodAnnotations are put on every pod.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('valkey.gomomento.com/'))",message="podAnnotations must not use keys under valkey.gomomento.com/: they belong to the manager"
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
	// ExternalAccess lets clients outside Kubernetes use the cluster.
	// +optional
	ExternalAccess *ExternalAccess `json:"externalAccess,omitempty"`
	// Paused makes the manager report, but change nothing.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// ValkeyCluster is a sharded Valkey cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.shards,statuspath=.status.shardCount
// +kubebuilder:resource:scope=Namespaced,shortName=vkc,categories=valkey
// +kubebuilder:printcolumn:name="Config",type=string,JSONPath=`.spec.configRef`
// +kubebuilder:printcolumn:name="Shards",type=integer,JSONPath=`.spec.shards`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicasPerShard`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (size(self.metadata.name) <= 53 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,message="metadata.name must be a DNS-1035 label of at most 53 characters: a lower-case letter, then letters, digits and '-', so that the names of pods and Services derived from it are valid"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.tls) || self.spec.tls.secretRef != self.metadata.name + '-operator-tls'",message="spec.tls.secretRef must not be <cluster>-operator-tls: that is the manager's own copy; name the Secret that you maintain"
type ValkeyCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ValkeyClusterSpec `json:"spec"`
	// +optional
	Status ValkeyClusterStatus `json:"status,omitempty"`
}

// ValkeyClusterList is a list of clusters.
//
// +kubebuilder:object:root=true
type ValkeyClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ValkeyCluster `json:"items"`
}
