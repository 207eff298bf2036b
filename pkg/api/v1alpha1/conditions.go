package v1alpha1

// Condition types of a ValkeyCluster.
const (
	// ConditionReady: every slot is served and every wished node is in sync.
	ConditionReady = "Ready"
	// ConditionProgressing: the manager is changing something, or wants to.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: redundancy or service is less than wished.
	ConditionDegraded = "Degraded"
	// ConditionConfigResolved: config chain, image and roles all exist and fit.
	ConditionConfigResolved = "ConfigResolved"
	// ConditionTLSReady: every node serves the Secret's certificate.
	ConditionTLSReady = "TLSReady"
	// ConditionACLApplied: every node has the wished users in force.
	ConditionACLApplied = "ACLApplied"
	// ConditionExternalAccessReady: the cluster is reachable from outside as
	// wished.
	ConditionExternalAccessReady = "ExternalAccessReady"
	// ConditionDataLoss: slots were given to an empty node because no copy of
	// their data was left. It stays until it is acknowledged.
	ConditionDataLoss = "DataLoss"
)

// Condition types of a ValkeyNode.
const (
	// ConditionPodCreated: the node has had its pod, the only one that it gets.
	ConditionPodCreated = "PodCreated"
)

// Reasons of conditions and events. docs/reference/conditions.md is compared
// with this list by a test.
const (
	ReasonActive              = "Active"
	ReasonCreating            = "Creating"
	ReasonNodesNotReady       = "NodesNotReady"
	ReasonSlotsUncovered      = "SlotsUncovered"
	ReasonComplete            = "Complete"
	ReasonReconciling         = "Reconciling"
	ReasonPaused              = "Paused"
	ReasonStepFailed          = "StepFailed"
	ReasonMigrationFailed     = "MigrationFailed"
	ReasonWaiting             = "Waiting"
	ReasonHealthy             = "Healthy"
	ReasonNodeUnreachable     = "NodeUnreachable"
	ReasonPodPending          = "PodPending"
	ReasonPodFailed           = "PodFailed"
	ReasonPodRejected         = "PodRejected"
	ReasonResolved            = "Resolved"
	ReasonConfigNotFound      = "ConfigNotFound"
	ReasonConfigChainInvalid  = "ConfigChainInvalid"
	ReasonImageNotFound       = "ImageNotFound"
	ReasonImageNotSet         = "ImageNotSet"
	ReasonVersionNotSupported = "VersionNotSupported"
	ReasonRoleNotFound        = "RoleNotFound"
	ReasonSettingRefused      = "SettingRefused"
	ReasonMemoryExceeded      = "MemoryExceeded"
	ReasonDuplicateUsername   = "DuplicateUsername"
	ReasonNameConflict        = "NameConflict"
	ReasonTLSDisabled         = "TLSDisabled"
	ReasonTLSSecretNotFound   = "TLSSecretNotFound"
	ReasonTLSInvalid          = "TLSInvalid"
	ReasonTLSUsageMissing     = "TLSUsageMissing"
	ReasonTLSChainBroken      = "TLSChainBroken"
	ReasonTLSExpired          = "TLSExpired"
	ReasonTLSNotYetValid      = "TLSNotYetValid"
	ReasonTLSExpiring         = "TLSExpiring"
	ReasonTLSNameNotCovered   = "TLSNameNotCovered"
	ReasonBindingRefused      = "BindingRefused"
	ReasonTLSServed           = "Served"
	ReasonTLSRotating         = "Rotating"
	ReasonTLSNotServed        = "NotServed"
	ReasonACLApplied          = "Applied"
	ReasonACLPending          = "Pending"
	ReasonACLNotApplied       = "NotApplied"
	ReasonRoleRefused         = "RoleRefused"
	ReasonManualChange        = "ManualChangeReverted"
	ReasonRotated             = "CredentialsRotated"
	ReasonExternalDisabled    = "Disabled"
	ReasonExternalPending     = "AddressPending"
	ReasonExternalWaiting     = "PortsPending"
	ReasonExternalAnnouncing  = "Announcing"
	ReasonExternalReady       = "Reachable"
	ReasonGatewayMissing      = "GatewayAPIMissing"
	ReasonNodeReplaced        = "NodeReplaced"
	ReasonDataLoss            = "DataLoss"
	ReasonCopiesAwaited       = "CopiesAwaited"
	ReasonSettingRejected     = "SettingRejected"
	ReasonCreated             = "Created"
)
