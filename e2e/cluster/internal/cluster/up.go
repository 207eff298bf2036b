//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/addons"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cgroups"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/controlplane"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/host"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/hostnet"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/images"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/node"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/pki"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/proc"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/state"
)

// stepLimit bounds each wait of `up`; the slowest takes about 20 s.
const stepLimit = 3 * time.Minute

// Up leaves a healthy cluster behind: the one that runs, or a new one in place
// of whatever is there. If it fails or is interrupted it takes down what it
// started; if it is killed, the next Up or Down does.
func Up(ctx context.Context, say Say) (err error) {
	lock, err := acquire(ctx, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	groups, err := cgroups.Detect()
	if err != nil {
		return err
	}
	// From here on every child is born in the cgroup that Down empties.
	leave, err := groups.Enter(layout.HostGroup)
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		err = errors.Join(err, leave())
		if !keep {
			err = errors.Join(err, cleanUp(context.WithoutCancel(ctx), groups))
		}
	}()
	p, err := allParts(ctx, say)
	if err != nil {
		// A cluster that ran before isn't to blame.
		_, keep, _ = state.Load()
		return err
	}
	if healthy(ctx, p, groups, say) {
		keep = true
		return nil
	}
	if err := dismantle(ctx, groups); err != nil {
		return err
	}
	b := builder{parts: p, groups: groups, say: say}
	if err := b.build(ctx); err != nil {
		return err
	}
	keep = true
	return nil
}

func allParts(ctx context.Context, say Say) (p parts, err error) {
	w, err := openWorkshop(ctx, say)
	if err != nil {
		return parts{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.prepare(ctx); err != nil {
		return parts{}, err
	}
	p, err = w.all(ctx)
	if err != nil {
		return parts{}, err
	}
	return p, w.prune(time.Now())
}

func acquire(ctx context.Context, say Say) (*state.Lock, error) {
	return state.Acquire(ctx, layout.LockFile, func() {
		say("another command is changing the cluster; waiting for it")
	})
}

// builder starts a cluster from nothing.
type builder struct {
	parts  parts
	groups cgroups.Host
	say    Say
	state  state.State
	client kubernetes.Interface
	procs  []*proc.Process
}

func (b *builder) build(ctx context.Context) error {
	b.say("starting the control plane (%s)", b.groups)
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if err := b.startControlPlane(ctx); err != nil {
		return err
	}
	b.say("starting three nodes")
	if err := b.startNodes(ctx); err != nil {
		return err
	}
	b.say("waiting for DNS on every node")
	if err := b.startDNS(ctx); err != nil {
		return err
	}
	if err := b.finish(ctx); err != nil {
		return err
	}
	b.say("the cluster is up; its kubeconfig is %s", layout.Kubeconfig())
	return nil
}

// prepare makes directories, keys and the bridge.
func (b *builder) prepare(ctx context.Context) error {
	for _, dir := range []string{layout.StateDir, layout.PKIDir(), layout.ConfDir(), layout.LogDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
	}
	if err := clearLogs(); err != nil {
		return err
	}
	archives, err := images.Archives(b.parts.imageDirs...)
	if err != nil {
		return err
	}
	sysctls, err := host.Sysctls()
	if err != nil {
		return err
	}
	key, err := b.parts.key()
	if err != nil {
		return err
	}
	b.state = state.State{
		Key: key, Images: archives, ImageDirs: b.parts.imageDirs[1:], Rootfs: b.parts.rootfs, Tools: b.parts.tools,
		Binaries: []string{b.parts.kubernetes, b.parts.kubeRouter}, Sysctls: sysctls,
		ControlPlane: map[string]proc.ID{}, Nodes: map[string]proc.ID{},
	}
	if err := b.state.Save(); err != nil {
		return err
	}
	for _, n := range layout.Nodes() {
		if err := node.PrepareDir(n); err != nil {
			return err
		}
	}
	if err := pki.WriteCluster(); err != nil {
		return err
	}
	// On a busy disk etcd may stand still for half a minute, whatever it is told about
	// syncing, and with it every lease.
	if err := host.MountMemory(layout.EtcdDir(), 2<<30); err != nil {
		return err
	}
	return hostnet.CreateBridge(ctx)
}

// clearLogs removes the logs of the run before, but not those of builds.
func clearLogs() error {
	for _, pattern := range []string{"node*.log", "etcd.log", "kube-*.log", "audit*.log"} {
		found, err := filepath.Glob(filepath.Join(layout.LogDir, pattern))
		if err != nil {
			return fmt.Errorf("list old logs: %w", err)
		}
		for _, path := range found {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove an old log: %w", err)
			}
		}
	}
	return nil
}

func (b *builder) startControlPlane(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	client, err := controlplane.Client()
	if err != nil {
		return err
	}
	b.client = client
	for _, name := range controlplane.Names() {
		p, err := controlplane.Start(name, b.parts.tools)
		if err != nil {
			return err
		}
		b.procs = append(b.procs, p)
		b.state.ControlPlane[name] = p.ID
		if name == "kube-apiserver" {
			// The others are the happier for an API server that answers.
			if err := controlplane.AwaitReady(ctx, client, b.procs); err != nil {
				return err
			}
		}
	}
	return b.state.Save()
}

func (b *builder) startNodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	since := time.Now()
	for _, n := range layout.Nodes() {
		p, err := node.Start(ctx, nodeSpec(n, b.state, b.groups), b.groups)
		if err != nil {
			return err
		}
		b.procs = append(b.procs, p)
		b.state.Nodes[n.Name] = p.ID
	}
	if err := b.state.Save(); err != nil {
		return err
	}
	for _, n := range layout.Nodes() {
		if err := awaitNode(ctx, b.client, n, since, b.procs); err != nil {
			return err
		}
	}
	return nil
}

func nodeSpec(n layout.Node, s state.State, groups cgroups.Host) node.Spec {
	spec := node.Spec{Node: n, Rootfs: s.Rootfs, Binaries: s.Binaries, Images: s.Images, LogDir: layout.LogDir}
	for _, m := range groups.Mounts {
		spec.Cgroups = append(spec.Cgroups, m.Path)
	}
	return spec
}

// awaitNode waits until the node says, since the given time, that it is Ready,
// or until one of the processes ends.
func awaitNode(ctx context.Context, client kubernetes.Interface, n layout.Node, since time.Time, processes []*proc.Process) error {
	for {
		got, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err == nil && readySince(got, since) {
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
			return fmt.Errorf("%s doesn't get Ready: %w; see %s-kubelet.log", n.Name, errors.Join(ctx.Err(), err), filepath.Join(layout.LogDir, n.Name))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// readySince looks for a heartbeat of the given time or later: a node that was
// killed stays Ready in the API for most of a minute. The API has whole seconds.
func readySince(n *corev1.Node, since time.Time) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.Time.Before(since.Truncate(time.Second))
		}
	}
	return false
}

func (b *builder) startDNS(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	if err := addons.InstallDNS(ctx, b.parts.tools); err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, len(layout.Nodes()))
	for i, n := range layout.Nodes() {
		wait.Go(func() {
			if err := addons.AwaitDNS(ctx, b.state.Nodes[n.Name].PID); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.Name, err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// finish waits until nothing is amiss, and only then calls the start complete.
func (b *builder) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	b.state.Complete = true
	for {
		st, err := inspect(ctx, b.groups, b.state)
		if err == nil && st.Health == clusterctl.StateHealthy {
			return b.state.Save()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster doesn't get healthy: %w: %v; see the logs in %s", errors.Join(ctx.Err(), err), st.Problems, layout.LogDir)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
