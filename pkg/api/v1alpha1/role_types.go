package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Access says whether a rule grants or takes away.
// +kubebuilder:validation:Enum=allow;deny
type Access string

// Values of Access.
const (
	AccessAllow Access = "allow"
	AccessDeny  Access = "deny"
)

// RuleName is the name of an ACL category, command or subcommand.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z][a-zA-Z0-9_-]*$')",message="name must start with a letter and hold only letters, digits, '_' and '-'; write categories without @ and subcommands in their own field"
type RuleName string

// CategoryRule allows or denies one ACL category.
type CategoryRule struct {
	// Name of the category without @, for example read.
	Name RuleName `json:"name"`
	// Access is allow or deny.
	Access Access `json:"access"`
}

// CommandRule allows or denies one command or subcommand.
type CommandRule struct {
	// Name of the command, for example config.
	Name RuleName `json:"name"`
	// Subcommand of the command, for example get.
	// +optional
	Subcommand RuleName `json:"subcommand,omitempty"`
	// Access is allow or deny.
	Access Access `json:"access"`
}

// ValkeyRoleSpec lists what a role may run. Rules apply in order: categories
// first, then commands; everything not allowed is refused.
type ValkeyRoleSpec struct {
	// Categories, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Categories []CategoryRule `json:"categories,omitempty"`
	// Commands, in order, after the categories.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Commands []CommandRule `json:"commands,omitempty"`
}

// ValkeyRole is a set of commands that bindings refer to.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=vkr,categories=valkey
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ValkeyRole struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ValkeyRoleSpec `json:"spec"`
}

// ValkeyRoleList is a list of roles.
//
// +kubebuilder:object:root=true
type ValkeyRoleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ValkeyRole `json:"items"`
}
