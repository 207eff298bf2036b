//go:build e2e

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
)

// Upgrade installs the manager anew, as an upgrade does, from another image or from
// that of the pod that runs if image is empty. It returns the pod that leads then.
func (e *Env) Upgrade(ctx context.Context, image string) (corev1.Pod, error) {
	old, err := e.WaitForManager(ctx, "")
	if err != nil {
		return old, err
	}
	if image == "" {
		image = old.Spec.Containers[0].Image
	}
	if err := e.applyManager(ctx, image); err != nil {
		return old, err
	}
	return e.WaitForManager(ctx, old.Name)
}

// BuildManager builds the manager of this tree once more, as another version, and
// gives its image to every node of the local Kubernetes.
func (e *Env) BuildManager(t testing.TB, version string) (image string) {
	t.Helper()
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "manager"), filepath.Join(dir, "image.tar")
	nodes, err := clusterctl.GetStatus(t.Context())
	if err != nil || len(nodes.Nodes) == 0 {
		t.Fatalf("find the nodes to build a manager for: %v", err)
	}
	image = "kubectl-valkey/manager:" + version
	stamp := "-s -w -X github.com/kubectl-valkey/kubectl-valkey/pkg/version.version=" + version
	for _, argv := range [][]string{
		{"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o", program, "./cmd/manager"},
		{"go", "run", "./deploy/image", "--binary", program, "--tag", image, "--out", archive},
	} {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = e.Root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build another manager: %v: %s", err, out)
		}
	}
	if err := clusterctl.Load(t.Context(), archive); err != nil {
		t.Fatalf("load another manager: %v", err)
	}
	return image
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
