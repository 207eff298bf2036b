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

// NodeLabelValue is the value of a label of Kubernetes nodes.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?)?$')",message="nodeSelector: each value must be that of a node label: letters, digits, '-', '_' and '.', with a letter or digit at both ends"
type NodeLabelValue string

// Placement says where pods may run.
type Placement struct {
	// Zones (values of topology.kubernetes.io/zone) that pods may run in; unset
	// means any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?)?$')",message="zones: each must be a value of the label topology.kubernetes.io/zone: letters, digits, '-', '_' and '.'"
	Zones []string `json:"zones,omitempty"`
	// ZoneSpread of the nodes of each shard; unset means the manager's default.
	// +optional
	ZoneSpread ZoneSpread `json:"zoneSpread,omitempty"`
	// NodeSelector that Kubernetes nodes must match.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?$') || (oldSelf.hasValue() && k in oldSelf.value()))",optionalOldSelf=true,message="nodeSelector: each key must be that of a node label"
	NodeSelector map[string]NodeLabelValue `json:"nodeSelector,omitempty"`
	// Tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.?operator.orValue('') in ['', 'Equal', 'Exists', 'Lt', 'Gt'] && t.?effect.orValue('') in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="tolerations: operator must be Equal or Exists and effect NoSchedule, PreferNoSchedule or NoExecute; leave effect out to match all"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.?operator.orValue('') == 'Exists' ? t.?value.orValue('') == '' : t.?key.orValue('') != '')",message="tolerations: operator Exists takes no value, and every other operator needs a key"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.tolerationSeconds) || t.?effect.orValue('') == 'NoExecute')",message="tolerations: tolerationSeconds needs effect NoExecute"
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
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="tls.secretRef must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	SecretRef string `json:"secretRef"`
}

// ValkeyClusterSpec is the wish for one cluster.
//
// Rules over several fields hold back only when one of their fields changes, so
// that a cluster made before a rule can still be updated elsewhere.
//
// +kubebuilder:validation:XValidation:rule="has(self.tls) == has(oldSelf.tls)",fieldPath=".tls",message="spec.tls is fixed at creation: it can be neither added to nor removed from a cluster (only tls.secretRef may change); create a new cluster instead"
// +kubebuilder:validation:XValidation:rule="!has(self.externalAccess) || !has(self.externalAccess.gateway) || self.externalAccess.gateway.basePort + self.shards * (self.replicasPerShard + 1) - 1 <= 65535 || (oldSelf.hasValue() && oldSelf.value().?externalAccess.?gateway.?basePort == self.?externalAccess.?gateway.?basePort && oldSelf.value().shards == self.shards && oldSelf.value().replicasPerShard == self.replicasPerShard)",optionalOldSelf=true,fieldPath=".externalAccess.gateway.basePort",message="externalAccess.gateway.basePort is too high: basePort + shards * (replicasPerShard + 1) - 1 must stay within 65535; lower basePort or the number of nodes"
// +kubebuilder:validation:XValidation:rule="!has(self.externalAccess) || !has(self.externalAccess.domain) || size(self.externalAccess.?hostnamePrefix.orValue('shard')) + size(self.externalAccess.domain) + size(string(self.shards - 1)) + 2 <= 253 || (oldSelf.hasValue() && oldSelf.value().shards == self.shards && has(oldSelf.value().externalAccess) && has(oldSelf.value().externalAccess.domain) && self.externalAccess.domain == oldSelf.value().externalAccess.domain && has(self.externalAccess.hostnamePrefix) == has(oldSelf.value().externalAccess.hostnamePrefix) && (!has(self.externalAccess.hostnamePrefix) || self.externalAccess.hostnamePrefix == oldSelf.value().externalAccess.hostnamePrefix))",optionalOldSelf=true,fieldPath=".externalAccess.domain",message="externalAccess.domain is too long: <hostnamePrefix>-<highest shard>.<domain> must stay within 253 characters; shorten domain or hostnamePrefix"
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
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('valkey.gomomento.com/') || (oldSelf.hasValue() && k in oldSelf.value()))",optionalOldSelf=true,message="podAnnotations must not use keys under valkey.gomomento.com/: they belong to the manager; choose another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*/)?[a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?$') || (oldSelf.hasValue() && k in oldSelf.value()))",optionalOldSelf=true,message="podAnnotations: each key must be an annotation key: an optional DNS name and '/', then at most 63 letters, digits, '-', '_' and '.'"
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
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (size(self.metadata.name) <= 53 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name must be a DNS-1035 label of at most 53 characters: a lower-case letter, then letters, digits and '-', so that the names of pods and Services derived from it are valid"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.tls) || self.spec.tls.secretRef != self.metadata.name + '-operator-tls' || (oldSelf.hasValue() && has(oldSelf.value().spec.tls) && self.spec.tls.secretRef == oldSelf.value().spec.tls.secretRef)",optionalOldSelf=true,fieldPath=".spec.tls.secretRef",message="spec.tls.secretRef must not be <cluster>-operator-tls: that is the manager's own copy; name the Secret that you maintain"
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
