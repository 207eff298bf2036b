//go:build e2e

package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Reinstall applies what users apply once more, CRDs included, and returns when the
// manager that this starts leads.
func (e *Env) Reinstall(ctx context.Context) error {
	old, err := e.WaitForManager(ctx, "")
	if err != nil {
		return err
	}
	if err := e.applyManager(ctx, old.Spec.Containers[0].Image); err != nil {
		return err
	}
	_, err = e.WaitForManager(ctx, old.Name)
	return err
}

// ManagerMemory returns how many bytes the manager's process has in memory, and how
// many it had at most since it was started. It works on the local Kubernetes only.
func (e *Env) ManagerMemory(pod corev1.Pod) (now, most int64, err error) {
	pid, err := containerProcess(pod)
	if err != nil {
		return 0, 0, err
	}
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of the manager: %w", err)
	}
	values := map[string]int64{}
	for line := range strings.Lines(string(status)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.HasSuffix(strings.TrimSpace(value), " kB") {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return 0, 0, fmt.Errorf("read the memory of the manager: %w", err)
			}
			values[key] = kib << 10
		}
	}
	if values["VmRSS"] == 0 || values["VmHWM"] == 0 {
		return 0, 0, fmt.Errorf("read the memory of the manager: its process has ended: %.300s", status)
	}
	return values["VmRSS"], values["VmHWM"], nil
}
