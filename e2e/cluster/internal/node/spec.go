// Package node is one node of the cluster: a process tree in network, mount,
// PID, IPC and host name namespaces of its own, with a real container runtime
// and a real kubelet in it. The host's side starts and enters it; Init is what
// runs as its first process.
package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

// Spec tells a node's first process what it is and where its parts are.
type Spec struct {
	Node layout.Node `json:"node"`
	// Rootfs is the Debian folder below the node's overlay.
	Rootfs string `json:"rootfs"`
	// Binaries are directories with kubelet, kube-proxy and kube-router.
	Binaries []string `json:"binaries"`
	// Images are archives to import before the kubelet starts.
	Images []string `json:"images"`
	// Cgroups are the mounts of the host to show inside.
	Cgroups []string `json:"cgroups"`
	// LogDir takes the logs of the node's programs.
	LogDir string `json:"logDir"`
}

// Paths inside of the node.
const (
	confDir   = "/etc/kubectl-valkey"
	partsDir  = "/opt/kubectl-valkey"
	nodeLogs  = "/var/log/kubectl-valkey"
	criSocket = "/run/containerd/containerd.sock"
)

func specFile(n layout.Node) string { return filepath.Join(n.Dir(), "spec.json") }

func (s Spec) write() error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the node's specification: %w", err)
	}
	if err := os.WriteFile(specFile(s.Node), content, 0o600); err != nil {
		return fmt.Errorf("write the node's specification: %w", err)
	}
	return nil
}

func readSpec(path string) (Spec, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Spec{}, fmt.Errorf("read the node's specification: %w", err)
	}
	var s Spec
	if err := json.Unmarshal(content, &s); err != nil {
		return Spec{}, fmt.Errorf("read the node's specification: %w", err)
	}
	return s, nil
}
