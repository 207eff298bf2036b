//go:build linux

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kubeletSysctls are the settings of the whole kernel that a kubelet changes
// when it starts (its container manager's "kernel tunables").
var kubeletSysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// Sysctls reads the settings that kubelets are going to change.
func Sysctls() (map[string]string, error) {
	values := map[string]string{}
	for _, name := range kubeletSysctls {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			return nil, fmt.Errorf("read a kernel setting: %w", err)
		}
		values[name] = strings.TrimSpace(string(value))
	}
	return values, nil
}

// RestoreSysctls sets them back.
func RestoreSysctls(values map[string]string) error {
	for name, value := range values {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("restore a kernel setting: %w", err)
		}
	}
	return nil
}
