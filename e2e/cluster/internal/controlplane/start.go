package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/proc"
)

// Start starts one process of the control plane. Tools is the directory with
// the programs, by name.
func Start(name, tools string) (*proc.Process, error) {
	if name == "kube-apiserver" {
		if err := os.WriteFile(policyFile(), []byte(auditPolicy), 0o644); err != nil {
			return nil, fmt.Errorf("write the audit policy: %w", err)
		}
	}
	cmd := exec.Command(filepath.Join(tools, name), args(name)...)
	cmd.Dir = layout.StateDir
	return proc.Start(name, cmd, layout.LogFile(name))
}

// Client is the administrator's client.
func Client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", layout.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 100, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}

// AwaitReady waits until the API server calls itself ready, or until one of
// the processes ends.
func AwaitReady(ctx context.Context, client kubernetes.Interface, processes []*proc.Process) error {
	for {
		err := Ready(ctx, client)
		if err == nil {
			return nil
		}
		for _, p := range processes {
			select {
			case <-p.Exited:
				return p.Err
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server doesn't get ready: %w; see %s", errors.Join(ctx.Err(), err), layout.LogFile("kube-apiserver"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Ready asks the API server once.
func Ready(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}
