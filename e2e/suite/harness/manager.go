//go:build e2e

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the installation.
const (
	ManagerNamespace = "valkey-operator"
	ManagerName      = "valkey-operator"
)

func managerKey() client.ObjectKey {
	return client.ObjectKey{Namespace: ManagerNamespace, Name: ManagerName}
}

// ManagerPods lists the manager's pods, those that are going among them.
func (e *Env) ManagerPods(ctx context.Context) ([]corev1.Pod, error) {
	// Pods that networkpolicy --test puts in the manager's place are none.
	selector, err := labels.Parse("app=" + ManagerName + ",!valkey.gomomento.com/network-probe")
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	err = e.Client.List(ctx, &list, client.InNamespace(ManagerNamespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the manager's pods: %w", err)
	}
	return list.Items, nil
}

// WaitForManager waits until a manager leads that is not the pod named, and
// returns its pod.
func (e *Env) WaitForManager(ctx context.Context, not string) (corev1.Pod, error) {
	var leader corev1.Pod
	err := until(ctx, patience, func() error {
		var lease coordinationv1.Lease
		if err := e.Client.Get(ctx, managerKey(), &lease); err != nil {
			return err
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		pods, err := e.ManagerPods(ctx)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if strings.HasPrefix(holder, pod.Name+"_") && pod.Name != not && pod.DeletionTimestamp.IsZero() {
				leader = pod
				return nil
			}
		}
		return fmt.Errorf("the lease is held by %q, the manager's pods are %s", holder, podsInBrief(pods))
	})
	if err != nil {
		err = fmt.Errorf("no manager leads: %w", err)
	}
	return leader, err
}

func podsInBrief(pods []corev1.Pod) string {
	var out []string
	for _, p := range pods {
		out = append(out, fmt.Sprintf("%s %s %s", p.Name, p.Status.Phase, waitingReason(p)))
	}
	return strings.Join(out, ", ")
}

func waitingReason(p corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil:
			return c.State.Waiting.Reason + " " + c.State.Waiting.Message
		case c.State.Terminated != nil:
			return c.State.Terminated.Reason + " " + c.State.Terminated.Message
		}
	}
	return ""
}

// KillManager ends the manager as a power failure would: no signal is handled, no
// lease given back. Its successor starts at once.
//
// On the local Kubernetes the process itself is killed, and then its lease is
// removed: that it has ended is certain, so the wait of 15 s for the lease to
// expire would prove nothing more.
func (e *Env) KillManager(ctx context.Context, pod corev1.Pod) error {
	if e.Local {
		pid, err := containerProcess(pod)
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the manager: %w", err)
		}
	}
	// Before the kubelet can start it again in the same pod.
	if err := client.IgnoreNotFound(e.Client.Delete(ctx, &pod, client.GracePeriodSeconds(0))); err != nil {
		return fmt.Errorf("delete the pod of the manager: %w", err)
	}
	if !e.Local {
		return nil
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ManagerNamespace, Name: ManagerName}}
	if err := client.IgnoreNotFound(e.Client.Delete(ctx, lease)); err != nil {
		return fmt.Errorf("remove the lease of the killed manager: %w", err)
	}
	return nil
}

// ReplaceManager kills the manager that leads and returns the pod of its successor
// once that leads.
func (e *Env) ReplaceManager(t testing.TB) corev1.Pod {
	t.Helper()
	leader, err := e.WaitForManager(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.KillManager(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	next, err := e.WaitForManager(t.Context(), leader.Name)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// ScaleManager sets how many managers run. With none it returns when the last has
// gone.
func (e *Env) ScaleManager(ctx context.Context, n int32) error {
	deployment := &appsv1.Deployment{}
	if err := e.Client.Get(ctx, managerKey(), deployment); err != nil {
		return fmt.Errorf("read the manager's Deployment: %w", err)
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = &n
	if err := e.Client.Patch(ctx, deployment, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("scale the manager: %w", err)
	}
	if n > 0 {
		_, err := e.WaitForManager(ctx, "")
		return err
	}
	return until(ctx, patience, func() error {
		pods, err := e.ManagerPods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("pod %s is still there", pods[0].Name)
		}
		return err
	})
}

// managerRestarts returns an error if the manager ended by itself: whoever kills
// it here deletes its pod too.
func (e *Env) managerRestarts(ctx context.Context) error {
	pods, err := e.ManagerPods(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				errs = append(errs, fmt.Errorf("the manager in pod %s ended %d times by itself", pod.Name, c.RestartCount))
			}
		}
	}
	return errors.Join(errs...)
}

// ManagerSockets returns what the manager's network namespace listens on, a line
// of /proc/net each, and how many TCP connections it has. It works on the local
// Kubernetes only, whose containers are processes of this machine.
func (e *Env) ManagerSockets(pod corev1.Pod) (listening []string, connections int, err error) {
	pid, err := containerProcess(pod)
	if err != nil {
		return nil, 0, err
	}
	// The state of a listening TCP socket is 0A; a bound UDP one without a peer is
	// 07; a listening UNIX socket has the flag of listening, 00010000.
	states := map[string]func([]string) bool{
		"tcp":  func(f []string) bool { return f[3] == "0A" },
		"tcp6": func(f []string) bool { return f[3] == "0A" },
		"udp":  func(f []string) bool { return f[3] == "07" },
		"udp6": func(f []string) bool { return f[3] == "07" },
		"unix": func(f []string) bool { return f[3] == "00010000" },
	}
	for table, listens := range states {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net", table))
		if err != nil {
			return nil, 0, fmt.Errorf("read the sockets of the manager: %w", err)
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		for _, line := range lines[1:] {
			fields := strings.Fields(line)
			if len(fields) < 4 {
				continue
			}
			if listens(fields) {
				listening = append(listening, table+": "+line)
			}
			if strings.HasPrefix(table, "tcp") && fields[3] == "01" {
				connections++
			}
		}
	}
	return listening, connections, nil
}

// containerProcess finds the process of a pod's only container on this machine, also
// before its start was reported. The sandbox's own process holds the namespaces and
// is called pause.
func containerProcess(pod corev1.Pod) (int, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, file := range groups {
		group, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(group), "pod"+string(pod.UID)) {
			continue // a process that has just ended, or another one's
		}
		// Beside it there are the pause process and, for a moment, what an exec runs.
		name, err := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if program := strings.TrimSpace(string(name)); err == nil && (program == "valkey-server" || program == "manager") {
			return strconv.Atoi(strings.Split(file, "/")[2])
		}
	}
	return 0, fmt.Errorf("the container of pod %s is no process of this machine", pod.Name)
}

// KillServer ends the server in a pod without a warning.
func (e *Env) KillServer(ctx context.Context, pod corev1.Pod) error {
	if !e.Local {
		return e.Client.Delete(ctx, &pod, client.GracePeriodSeconds(0))
	}
	return e.SignalServer(pod, syscall.SIGKILL)
}

// SignalServer sends a signal to the server in a pod of the local Kubernetes.
func (e *Env) SignalServer(pod corev1.Pod, signal syscall.Signal) error {
	pid, err := containerProcess(pod)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("send %s to the server of pod %s: %w", signal, pod.Name, err)
	}
	return nil
}
