//go:build linux

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/addons"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cgroups"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/controlplane"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/hostnet"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/images"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/node"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/state"
)

// Status looks at the cluster.
func Status(ctx context.Context) (clusterctl.Status, error) {
	groups, err := cgroups.Detect()
	if err != nil {
		return clusterctl.Status{}, err
	}
	return Inspect(ctx, groups)
}

// Inspect looks at the cluster on a machine whose cgroups are known.
func Inspect(ctx context.Context, groups cgroups.Host) (clusterctl.Status, error) {
	s, ok, err := state.Load()
	if err != nil || !ok {
		return blank(groups), err
	}
	return inspect(ctx, groups, s)
}

// blank is the status of a cluster that isn't there.
func blank(groups cgroups.Host) clusterctl.Status {
	return clusterctl.Status{
		Health: clusterctl.StateDown, Kubeconfig: layout.Kubeconfig(), APIServer: layout.APIServerURL(),
		AuditLog: layout.AuditLog(), Logs: layout.LogDir, Cgroups: groups.String(),
		ControlPlane: []clusterctl.Process{}, Nodes: []clusterctl.Node{}, Images: []clusterctl.Image{},
	}
}

func inspect(ctx context.Context, groups cgroups.Host, s state.State) (clusterctl.Status, error) {
	st := blank(groups)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var err error
	if st.Images, err = images.Index(s.ImageDirs...); err != nil {
		return st, err
	}
	if !s.Complete {
		st.Problems = append(st.Problems, "its start isn't complete")
	}
	inspectControlPlane(&st, s)
	ready := inspectAPI(ctx, &st)
	for _, n := range layout.Nodes() {
		if err := inspectNode(ctx, &st, n, s, groups, ready[n.Name]); err != nil {
			return st, err
		}
	}
	st.Health = clusterctl.StateHealthy
	if len(st.Problems) > 0 {
		st.Health = clusterctl.StateDegraded
	}
	return st, nil
}

func inspectControlPlane(st *clusterctl.Status, s state.State) {
	for _, name := range controlplane.Names() {
		id := s.ControlPlane[name]
		p := clusterctl.Process{Name: name, PID: id.PID, Running: id.Alive()}
		if !p.Running {
			st.Problems = append(st.Problems, name+" doesn't run")
		}
		st.ControlPlane = append(st.ControlPlane, p)
	}
}

// inspectAPI asks the API server for its health and for the Ready nodes.
func inspectAPI(ctx context.Context, st *clusterctl.Status) map[string]bool {
	ready := map[string]bool{}
	client, err := controlplane.Client()
	if err == nil {
		err = controlplane.Ready(ctx, client)
	}
	if err != nil {
		st.Problems = append(st.Problems, fmt.Sprintf("the API server isn't ready: %v", err))
		return ready
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		st.Problems = append(st.Problems, fmt.Sprintf("the nodes can't be listed: %v", err))
		return ready
	}
	for _, n := range nodes.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				ready[n.Name] = c.Status == corev1.ConditionTrue
			}
		}
	}
	return ready
}

func inspectNode(ctx context.Context, st *clusterctl.Status, n layout.Node, s state.State, groups cgroups.Host, ready bool) error {
	id := s.Nodes[n.Name]
	out := clusterctl.Node{
		Name: n.Name, Zone: n.Zone, IP: n.IP(), PodCIDR: n.PodCIDR(), PID: id.PID, Running: id.Alive(), Ready: ready,
		Partitioned: hostnet.Partitioned(n), Cgroup: n.Group(),
	}
	problem := func(format string, args ...any) {
		st.Problems = append(st.Problems, n.Name+" "+fmt.Sprintf(format, args...))
	}
	if out.Running {
		for _, name := range node.Programs() {
			pid, err := node.Program(n, groups, name)
			if err != nil {
				return err
			}
			out.Processes = append(out.Processes, clusterctl.Process{Name: name, PID: pid, Running: pid != 0})
			if pid == 0 {
				problem("has no %s", name)
			}
			if name == "kubelet" && pid != 0 && node.Stopped(pid) {
				out.KubeletPaused = true
			}
		}
	}
	switch {
	case !out.Running:
		problem("is stopped")
	case out.Partitioned:
		problem("is partitioned")
	case out.KubeletPaused:
		problem("has a paused kubelet")
	case !out.Ready:
		problem("isn't Ready")
	default:
		if err := addons.ResolveFrom(ctx, id.PID); err != nil {
			problem("can't resolve names: %v", err)
		}
	}
	st.Nodes = append(st.Nodes, out)
	return nil
}
