package clusterctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/state"
)

// Up starts the cluster, or leaves the healthy one that runs. It returns when
// all nodes are Ready, names resolve on each and NetworkPolicies are enforced.
func Up(ctx context.Context) error { return run(ctx, "up") }

// Down removes the cluster. It is fine when nothing runs.
func Down(ctx context.Context) error { return run(ctx, "down") }

// Kubeconfig is the path of the administrator's kubeconfig. The file is there
// while the cluster is up.
func Kubeconfig() string { return layout.Kubeconfig() }

// AuditLog is the path of the API server's audit log; see Status.
func AuditLog() string { return layout.AuditLog() }

// HostIP is this machine as nodes and pods see it.
func HostIP() string { return layout.HostIP }

// GetStatus looks at the cluster; it is no error when that isn't well.
func GetStatus(ctx context.Context) (Status, error) {
	var st Status
	err := decode(ctx, &st, "status", "-o", "json")
	return st, err
}

// GetNode looks at one node.
func GetNode(ctx context.Context, name string) (Node, error) {
	st, err := GetStatus(ctx)
	if err != nil {
		return Node{}, err
	}
	for _, n := range st.Nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("the cluster has no node %q", name)
}

// GetImages lists the Valkey images that every node has, building them first
// if the cache has none.
func GetImages(ctx context.Context) ([]Image, error) {
	var list Images
	err := decode(ctx, &list, "images", "-o", "json")
	return list.Images, err
}

// ImageFor finds the image of a role, such as RoleCurrent.
func ImageFor(ctx context.Context, role string) (Image, error) {
	list, err := GetImages(ctx)
	if err != nil {
		return Image{}, err
	}
	for _, i := range list {
		if i.Role == role {
			return i, nil
		}
	}
	return Image{}, fmt.Errorf("no Valkey image has the role %q", role)
}

// Load loads a docker-archive file into every node. The images stay until
// `down`, over stops and starts of nodes.
func Load(ctx context.Context, archive string) error {
	path, err := filepath.Abs(archive)
	if err != nil {
		return fmt.Errorf("find the image archive: %w", err)
	}
	return run(ctx, "load", path)
}

// Assets makes sure that the binaries of the API-server tier exist and returns
// their directory, for envtest's KUBEBUILDER_ASSETS: kube-apiserver, etcd,
// kubectl, and valkey-server, valkey-cli and valkey-benchmark besides.
func Assets(ctx context.Context) (string, error) {
	out, err := output(ctx, "assets")
	return strings.TrimSpace(out), err
}

// CertManager makes sure that cert-manager's controllers exist and returns their
// directory: the program cert-manager, which issues in one namespace, and its CRDs
// in crds.
func CertManager(ctx context.Context) (string, error) {
	out, err := output(ctx, "cert-manager")
	return strings.TrimSpace(out), err
}

// NodeStop kills all of a node at once. The API server notices after its
// node-monitor grace period, 50 s.
func NodeStop(ctx context.Context, name string) error { return run(ctx, "node", "stop", name) }

// NodeStart starts a stopped node with its old identity and waits until it is
// Ready and resolves names.
func NodeStart(ctx context.Context, name string) error { return run(ctx, "node", "start", name) }

// NodePartition cuts a node off from the other nodes, the API server and this
// machine. What runs on it goes on.
func NodePartition(ctx context.Context, name string) error {
	return run(ctx, "node", "partition", name)
}

// NodeHeal ends a partition.
func NodeHeal(ctx context.Context, name string) error { return run(ctx, "node", "heal", name) }

// PauseKubelet halts a node's kubelet; its pods go on.
func PauseKubelet(ctx context.Context, name string) error {
	return run(ctx, "node", "pause-kubelet", name)
}

// ResumeKubelet lets it go on.
func ResumeKubelet(ctx context.Context, name string) error {
	return run(ctx, "node", "resume-kubelet", name)
}

// NodeExec runs a command in a node's mount, PID and network namespaces and
// returns its standard output.
func NodeExec(ctx context.Context, name string, argv ...string) (string, error) {
	return output(ctx, append([]string{"node", "exec", name, "--"}, argv...)...)
}

func run(ctx context.Context, args ...string) error {
	_, err := output(ctx, args...)
	return err
}

func decode(ctx context.Context, into any, args ...string) error {
	out, err := output(ctx, args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		return fmt.Errorf("read the output of cluster %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// output runs the command line program; what it said is part of the error.
func output(ctx context.Context, args ...string) (string, error) {
	program, err := build()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	// An interrupted `up` takes down what it started; a killed one can't.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("cluster %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// build builds the command line program, once in a process. The file is the
// same for all, so that test runs leave no binaries about.
var build = sync.OnceValues(func() (program string, err error) {
	source, err := layout.SourceDir()
	if err != nil {
		return "", err
	}
	dir, err := layout.CacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "cli")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache directory: %w", err)
	}
	lock, err := state.Acquire(context.Background(), filepath.Join(dir, ".lock"), func() {})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	program = filepath.Join(dir, "cluster")
	cmd := exec.Command("go", "build", "-o", program, "./e2e/cluster")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build e2e/cluster: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return program, nil
})
