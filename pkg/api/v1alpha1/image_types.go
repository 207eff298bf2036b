package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ValkeyImageSpec names a server image that clusters may run.
type ValkeyImageSpec struct {
	// Repository of the image, without tag, for example valkey/valkey.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([[][0-9a-fA-F:]+[]]|[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?)(:[0-9]+)?/)?[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*$')",message="repository must be an image name without tag or digest, such as valkey/valkey; the tag has its own field"
	Repository string `json:"repository"`

	// Tag of the image. A digest may follow it: 9.1.2@sha256:….
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}(@sha256:[0-9a-f]{64})?$')",message="tag must be an image tag such as 9.1.2, optionally followed by @sha256:<64 hex digits>"
	Tag string `json:"tag"`

	// Version of Valkey in the image, for example 9.1.2. It decides which
	// features are available; the text of the tag never does.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+){0,2}([-+~][0-9A-Za-z.+~-]+)?$')",message="version must be the Valkey version in the image, such as 9.1.2: digits and dots first, no leading v"
	Version string `json:"version"`

	// PullSecrets are names of Secrets in the namespace of each cluster that
	// runs the image.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	PullSecrets []string `json:"pullSecrets,omitempty"`
}

// ValkeyImage is a server image on the platform team's menu.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=vki,categories=valkey
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.repository`
// +kubebuilder:printcolumn:name="Tag",type=string,JSONPath=`.spec.tag`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ValkeyImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ValkeyImageSpec `json:"spec"`
}

// ValkeyImageList is a list of images.
//
// +kubebuilder:object:root=true
type ValkeyImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ValkeyImage `json:"items"`
}
