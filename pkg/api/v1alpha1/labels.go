package v1alpha1

// Labels and annotations of everything that belongs to a cluster.
const (
	// LabelName is "valkey" on every Valkey pod; network policies select on it.
	LabelName = "app.kubernetes.io/name"
	// LabelInstance holds the cluster's name.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelManagedBy is ManagedBy on every object that the manager creates.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelShardIndex holds the shard index of a node or pod, from 0.
	LabelShardIndex = Group + "/shard-index"
	// LabelJoinType on a ValkeyNode says why the node was created: JoinReplica,
	// JoinPrimary or JoinShard.
	LabelJoinType = Group + "/join-type"
	// LabelGeneration on a pod is a hash of what makes nodes roll. Spread
	// constraints match on it, so that a roll ends evenly spread.
	LabelGeneration = Group + "/generation"
	// LabelExternal on a pod lets it receive traffic of its external port.
	LabelExternal = Group + "/external"

	// AnnotationRefreshTLS and AnnotationRefreshACL on a pod are touched to make the
	// kubelet refresh the pod's mounted files at once.
	AnnotationRefreshTLS = Group + "/refresh-tls"
	AnnotationRefreshACL = Group + "/refresh-acl"
	// AnnotationKeys on a shard Service names the annotations that the manager put
	// there, so that those that are no longer wished go and those of others stay.
	AnnotationKeys = Group + "/annotation-keys"
	// AnnotationRequestPrefix starts the annotations by which the plugin asks
	// for an operation: <prefix><verb> = "<id> <args>".
	AnnotationRequestPrefix = Group + "/request-"

	// ApplicationName is the value of LabelName.
	ApplicationName = "valkey"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "valkey-operator"
)

// Values of LabelJoinType.
const (
	// JoinReplica marks a node that joins an existing shard as a replica.
	JoinReplica = "replica"
	// JoinPrimary marks a node that replaces a lost primary of a shard.
	JoinPrimary = "primary"
	// JoinShard marks a node that belongs to a shard's first set of nodes.
	JoinShard = "shard"
)

// InSyncGate is the pod readiness gate that the manager sets: true for a primary
// that owns slots and for a replica whose first sync is over. A disruption
// budget so counts copies of the data, not processes.
const InSyncGate = Group + "/in-sync"
