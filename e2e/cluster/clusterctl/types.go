// Package clusterctl drives the local Kubernetes of e2e/cluster from Go tests.
// Every function runs the command line program, so it does what a person would
// do; it needs root and a checkout around the working directory, as that does.
package clusterctl

// Status is what `cluster status -o json` prints.
type Status struct {
	// Health is StateHealthy, StateDegraded or StateDown.
	Health string `json:"health"`
	// Problems say what keeps it from being healthy.
	Problems []string `json:"problems,omitempty"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// APIServer is the address of the API server.
	APIServer string `json:"apiServer"`
	// AuditLog is the path of the API server's audit log: one audit.k8s.io/v1
	// Event as JSON a line, level Metadata, stage ResponseComplete, reads
	// included. A line is written before the request's answer is sent.
	AuditLog string `json:"auditLog"`
	// Logs is the directory of all processes' logs. It outlives `down`.
	Logs string `json:"logs"`
	// Cgroups says which version of cgroups the machine has.
	Cgroups string `json:"cgroups"`
	// ControlPlane are the processes beside the nodes.
	ControlPlane []Process `json:"controlPlane"`
	Nodes        []Node    `json:"nodes"`
	// Images are the Valkey images that every node has.
	Images []Image `json:"images"`
}

// The values of Status.Health.
const (
	StateHealthy  = "healthy"
	StateDegraded = "degraded"
	StateDown     = "down"
)

// Process is a process on the host.
type Process struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Running bool   `json:"running"`
}

// Node is one node.
type Node struct {
	Name string `json:"name"`
	Zone string `json:"zone"`
	IP   string `json:"ip"`
	// PodCIDR is where the node's pods get their addresses from.
	PodCIDR string `json:"podCIDR"`
	// PID is the first process of the node, as the host sees it; its
	// namespaces are the node's.
	PID         int  `json:"pid"`
	Running     bool `json:"running"`
	Ready       bool `json:"ready"`
	Partitioned bool `json:"partitioned"`
	// KubeletPaused is true between pause-kubelet and resume-kubelet.
	KubeletPaused bool `json:"kubeletPaused"`
	// Cgroup is the node's cgroup below each hierarchy's root; containers are
	// under its kubepods child.
	Cgroup string `json:"cgroup"`
	// Processes are the node's own programs.
	Processes []Process `json:"processes,omitempty"`
}

// The roles of the images.
const (
	// RoleCurrent is the newest Valkey.
	RoleCurrent = "current"
	// RoleRebuild is the same version with another digest.
	RoleRebuild = "rebuild"
	// RoleOld is a Valkey older than 9.
	RoleOld = "old"
)

// Image is a Valkey image that is loaded into every node.
type Image struct {
	Ref     string `json:"ref"`
	Version string `json:"version"`
	Role    string `json:"role"`
}

// Images is what `cluster images -o json` prints.
type Images struct {
	Images []Image `json:"images"`
}
