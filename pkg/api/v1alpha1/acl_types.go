package v1alpha1

// SystemUserPrefix starts the names of the manager's own users; a binding may
// not use it.
const SystemUserPrefix = "_momento_"

// KeyAccess says what a key pattern grants.
// +kubebuilder:validation:Enum=read;write;readwrite
type KeyAccess string

// Values of KeyAccess.
const (
	KeyRead      KeyAccess = "read"
	KeyWrite     KeyAccess = "write"
	KeyReadWrite KeyAccess = "readwrite"
)

// KeyPermission grants access to the keys that a glob pattern matches.
type KeyPermission struct {
	// Pattern is a glob, for example app:*.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[^\\p{Cc}\\p{Z}"\']+$')`,message="pattern must not hold spaces, quotes or control characters"
	Pattern string `json:"pattern"`
	// Access is read, write or readwrite.
	Access KeyAccess `json:"access"`
}

// ChannelPattern is a glob over pub/sub channels.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule=`self.matches('^[^\\p{Cc}\\p{Z}"\']+$')`,message="channels: each pattern must not hold spaces, quotes or control characters"
type ChannelPattern string

// Permission grants the commands of a role on some keys and channels.
type Permission struct {
	// RoleRef names a ValkeyRole.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RoleRef string `json:"roleRef"`
	// Keys that the commands may touch. An empty list grants no key.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Keys []KeyPermission `json:"keys"`
	// Channels that the commands may use. Unset grants no channel.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Channels []ChannelPattern `json:"channels,omitempty"`
}

// PasswordHash is the SHA-256 of a password in lower-case hex, as
// `kubectl valkey hash-password` prints it.
//
// The length limit is loose so that a hash of another kind (SHA-512 is twice as
// long) gets the message of the rule rather than that of the limit.
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="passwordHashes: each must be the SHA-256 of the password as 64 lower-case hex digits; kubectl valkey hash-password prints it"
type PasswordHash string

// ACLBinding gives one user its passwords and permissions.
type ACLBinding struct {
	// Username of the user; "default" binds the default user.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]+$')",message="username must hold only letters, digits, '_' and '-'"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('_momento_')",message="usernames that start with _momento_ belong to the manager; choose another username"
	Username string `json:"username"`
	// PasswordHashes of the user: any of them logs in.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	PasswordHashes []PasswordHash `json:"passwordHashes"`
	// Permissions of the user; each is a role on some keys and channels.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Permissions []Permission `json:"permissions"`
}
