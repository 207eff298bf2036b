package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
)

// target is the Kubernetes that the demo runs on.
type target struct {
	// local is false for a cluster that the person named.
	local bool
	// kubeconfig leads to it; the ambient one is never used.
	kubeconfig string
	// kubectlDir holds a kubectl if the machine has none, else it is empty.
	kubectlDir string
}

var localCluster = []string{"run", "./e2e/cluster"}

// findTarget starts the local Kubernetes, or takes the one that the person named,
// and lets the shell's later commands reach it.
func findTarget(ctx context.Context, s *shell, named, archive string) (target, error) {
	t := target{local: named == "", kubeconfig: named}
	if t.local {
		if err := s.show(ctx, "go", append(localCluster, "up")...); err != nil {
			return t, err
		}
		if err := s.show(ctx, "go", append(localCluster, "load", archive)...); err != nil {
			return t, err
		}
		path, err := s.capture(ctx, "go", append(localCluster, "kubeconfig")...)
		if err != nil {
			return t, err
		}
		t.kubeconfig = strings.TrimSpace(path)
	} else if _, err := os.Stat(named); err != nil {
		return t, fmt.Errorf("read the kubeconfig that USE_KUBECONFIG names: %w", err)
	}
	bin, err := filepath.Abs("bin")
	if err != nil {
		return t, fmt.Errorf("find the folder of the programs built: %w", err)
	}
	path := bin + string(os.PathListSeparator) + os.Getenv("PATH")
	if _, err := exec.LookPath("kubectl"); err != nil {
		dir, err := s.capture(ctx, "go", append(localCluster, "assets")...)
		if err != nil {
			return t, fmt.Errorf("find a kubectl: %w", err)
		}
		t.kubectlDir = strings.TrimSpace(dir)
		path += string(os.PathListSeparator) + t.kubectlDir
	}
	s.env = append(s.env, "KUBECONFIG="+t.kubeconfig, "PATH="+path)
	// exec.Command looks names up in this process's own PATH.
	return t, os.Setenv("PATH", path)
}

// valkeyImage asks the local Kubernetes which Valkey its nodes hold.
func valkeyImage(ctx context.Context, s *shell) (clusterctl.Image, error) {
	out, err := s.capture(ctx, "go", append(localCluster, "images", "-o", "json")...)
	if err != nil {
		return clusterctl.Image{}, err
	}
	var images clusterctl.Images
	if err := json.Unmarshal([]byte(out), &images); err != nil {
		return clusterctl.Image{}, fmt.Errorf("read the list of images: %w", err)
	}
	for _, image := range images.Images {
		if image.Role == clusterctl.RoleCurrent {
			return image, nil
		}
	}
	return clusterctl.Image{}, fmt.Errorf("the local Kubernetes holds no current Valkey image: %s", out)
}
