package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resources of one Valkey container, used as request and as limit.
type Resources struct {
	// CPU of a node, for example 500m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="cpu must be a quantity above 0, such as 500m or 2"
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory of a node, for example 2Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="memory must be a quantity above 0, such as 512Mi or 2Gi"
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// ValkeyConfigSpec is one link of a chain of configurations. The child wins for
// imageRef and each of the resources; valkey merges per key; acl replaces the
// base's list as a whole.
type ValkeyConfigSpec struct {
	// ImageRef names a ValkeyImage. A usable chain reaches one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ImageRef string `json:"imageRef,omitempty"`
	// BaseRef names the ValkeyConfig that this one builds on. A chain is at most
	// 10 deep.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BaseRef string `json:"baseRef,omitempty"`
	// Resources of each node.
	// +optional
	Resources *Resources `json:"resources,omitempty"`
	// Valkey holds server directives as in valkey.conf. Directives that the
	// manager sets itself can't be overridden.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-zA-Z][a-zA-Z0-9._-]*$') || (oldSelf.hasValue() && k in oldSelf.value()))",optionalOldSelf=true,message="valkey: each key must be one server directive: a letter, then letters, digits, '.', '_' and '-'"
	Valkey map[string]SettingValue `json:"valkey,omitempty"`
	// ACL binds users for every cluster of this config.
	// +optional
	// +listType=map
	// +listMapKey=username
	// +kubebuilder:validation:MaxItems=64
	ACL []ACLBinding `json:"acl,omitempty"`
}

// SettingValue is the value of a server directive.
// +kubebuilder:validation:MaxLength=4096
// +kubebuilder:validation:XValidation:rule=`self.matches('^[^\\r\\n]*$')`,message="a setting must not hold line breaks: give each directive a key of its own"
type SettingValue string

// ValkeyConfig is a configuration on the platform team's menu.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=vkcfg,categories=valkey
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.imageRef`
// +kubebuilder:printcolumn:name="Base",type=string,JSONPath=`.spec.baseRef`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.resources.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.resources.memory`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ValkeyConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ValkeyConfigSpec `json:"spec"`
}

// ValkeyConfigList is a list of configurations.
//
// +kubebuilder:object:root=true
type ValkeyConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ValkeyConfig `json:"items"`
}
