package v1alpha1

import corev1 "k8s.io/api/core/v1"

// EndpointType says which address a node gives to clients.
// +kubebuilder:validation:Enum=ip;hostname
type EndpointType string

// Values of EndpointType.
const (
	EndpointIP       EndpointType = "ip"
	EndpointHostname EndpointType = "hostname"
)

// DefaultHostnamePrefix starts the shard hostnames when none is set.
const DefaultHostnamePrefix = "shard"

// ExternalAccess exposes every node of a cluster outside Kubernetes: one Service
// per shard, one port per node.
//
// +kubebuilder:validation:XValidation:rule="!has(self.preferredEndpointType) || self.preferredEndpointType != 'hostname' || has(self.domain) || (oldSelf.hasValue() && !has(oldSelf.value().domain) && has(oldSelf.value().preferredEndpointType) && oldSelf.value().preferredEndpointType == 'hostname')",optionalOldSelf=true,fieldPath=".domain",reason="FieldValueRequired",message="externalAccess.domain is required when preferredEndpointType is hostname: set the DNS domain of the shard hostnames"
type ExternalAccess struct {
	// Enabled turns external access on. Off renders exactly what no block does.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// ServiceType of the shard Services; unset means NodePort, or ClusterIP with
	// a gateway.
	// +optional
	// +kubebuilder:validation:Enum=NodePort;LoadBalancer;ClusterIP
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`
	// ExternalTrafficPolicy of the shard Services. Local preserves the client's
	// source address.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// ServiceAnnotations are put on each shard Service. Values may use {shard}
	// and {hostname}.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('valkey.gomomento.com/') || (oldSelf.hasValue() && k in oldSelf.value()))",optionalOldSelf=true,message="serviceAnnotations must not use keys under valkey.gomomento.com/: they belong to the manager; choose another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*/)?[a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?$') || (oldSelf.hasValue() && k in oldSelf.value()))",optionalOldSelf=true,message="serviceAnnotations: each key must be an annotation key: an optional DNS name and '/', then at most 63 letters, digits, '-', '_' and '.'"
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`
	// HostnamePrefix of the shard hostnames <prefix>-<shard>.<domain>; unset
	// means shard.
	// +optional
	// +kubebuilder:validation:MaxLength=58
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="hostnamePrefix must be a DNS label: lower-case letters, digits and '-', at most 58 characters"
	HostnamePrefix string `json:"hostnamePrefix,omitempty"`
	// Domain of the shard hostnames.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$')",message="domain must be a DNS name such as valkey.example.com: lower-case labels of at most 63 characters, no trailing dot, '_' or '*'"
	Domain string `json:"domain,omitempty"`
	// PreferredEndpointType that nodes give to clients: ip (default) or hostname.
	// +optional
	PreferredEndpointType EndpointType `json:"preferredEndpointType,omitempty"`
	// Gateway exposes the nodes through TCPRoutes of a Gateway.
	// +optional
	Gateway *GatewayAccess `json:"gateway,omitempty"`
}

// GatewayAccess attaches one TCPRoute per node to listeners of a Gateway.
type GatewayAccess struct {
	// GatewayRef names the Gateway in the cluster's namespace.
	GatewayRef GatewayReference `json:"gatewayRef"`
	// BasePort is the first listener port; node n of shard s uses
	// basePort + s*(replicasPerShard+1) + n.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	BasePort int32 `json:"basePort"`
}

// GatewayReference names a Gateway.
type GatewayReference struct {
	// Name of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="gatewayRef.name must be the name of a Gateway: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`
	// Namespace of the Gateway; unset means the cluster's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')",message="gatewayRef.namespace must be the name of a namespace: lower-case letters, digits and '-'"
	Namespace string `json:"namespace,omitempty"`
}
