package kube

// Where the manifests install the manager.
const (
	ManagerNamespace  = "valkey-operator"
	ManagerDeployment = "valkey-operator"
	ManagerLease      = "valkey-operator"
)
