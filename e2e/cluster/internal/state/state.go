package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/proc"
)

// State is what one run of the cluster remembers. It is never the only
// evidence: tear-down goes by cgroups and names, and finds all without it.
type State struct {
	// Key condenses binaries, images and configuration: a cluster of another
	// key is replaced by `up`.
	Key string `json:"key"`
	// Complete is set when `up` saw the cluster work.
	Complete bool `json:"complete"`
	// ControlPlane are the processes on the host side, by name.
	ControlPlane map[string]proc.ID `json:"controlPlane"`
	// Nodes are the first processes of the nodes' PID namespaces, by name.
	Nodes map[string]proc.ID `json:"nodes"`
	// Images are the files that new nodes import.
	Images []string `json:"images"`
	// ImageDirs hold the lists of the Valkey images.
	ImageDirs []string `json:"imageDirs"`
	// Sysctls are settings of the kernel as they were before.
	Sysctls map[string]string `json:"sysctls"`
	// Rootfs, Binaries and Tools are the parts in the cache that it runs from.
	Rootfs   string   `json:"rootfs"`
	Binaries []string `json:"binaries"`
	Tools    string   `json:"tools"`
}

func file() string { return filepath.Join(layout.StateDir, "state.json") }

// Load reads the state; ok is false when there is none.
func Load() (s State, ok bool, err error) {
	content, err := os.ReadFile(file())
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, false, nil
	}
	if err != nil {
		return State{}, false, fmt.Errorf("read the cluster's state: %w", err)
	}
	// The file is written whole, so one that can't be read is of another
	// version of this program, whose cluster isn't this one's.
	readable := json.Unmarshal(content, &s) == nil
	return s, readable, nil
}

// Save writes the state, whole or not at all.
func (s State) Save() error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the cluster's state: %w", err)
	}
	temp := file() + ".new"
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return fmt.Errorf("write the cluster's state: %w", err)
	}
	if err := os.Rename(temp, file()); err != nil {
		return fmt.Errorf("write the cluster's state: %w", err)
	}
	return nil
}
