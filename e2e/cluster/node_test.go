//go:build e2e && linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

func node1(t *testing.T) clusterctl.Node {
	t.Helper()
	n, err := clusterctl.GetNode(t.Context(), "node1")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func isReady(t *testing.T, name, want string) func() error {
	return func() error {
		got, err := kubectl(t, "", "get", "node", name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && got != want {
			err = fmt.Errorf("Ready is %q", got)
		}
		return err
	}
}

func TestAStoppedNodeComesBackWithItsIdentity(t *testing.T) {
	namespace := deploy(t)
	uid := func() string { return mustKubectl(t, "", "get", "node", "node1", "-o", "jsonpath={.metadata.uid}") }
	before := uid()
	mustRun(t, "node", "stop", "node1")
	if n := node1(t); n.Running {
		t.Error("the stopped node runs")
	}
	if _, err := os.Stat("/sys/class/net/kv-node1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its cable: %v", err)
	}
	mustRun(t, "node", "stop", "node1") // once more is no error
	mustRun(t, "node", "start", "node1")
	if n := node1(t); !n.Running || !n.Ready {
		t.Errorf("after the start: %+v", n)
	}
	if after := uid(); after != before {
		t.Error("it came back as another node")
	}
	if st := status(t); st.Health != clusterctl.StateHealthy {
		t.Errorf("the cluster is %s: %v", st.Health, st.Problems)
	}
	eventually(t, waitLimit, "the node restarts its containers", func() error { return ping(t, namespace, "allowed", "server") })
}

func TestAPartitionedNodeIsLostAndFound(t *testing.T) {
	namespace := deploy(t)
	eventually(t, waitLimit, "the server answers", func() error { return ping(t, namespace, "allowed", "server") })
	mustRun(t, "node", "partition", "node1")
	if n := node1(t); !n.Partitioned || !n.Running {
		t.Errorf("partitioned: %+v", n)
	}
	if err := ping(t, namespace, "allowed", "server"); !timesOut(err) {
		t.Errorf("a pod of another node gets %v", err)
	}
	eventually(t, 10*time.Minute, "the API server misses the node", isReady(t, "node1", "Unknown"))
	mustRun(t, "node", "heal", "node1")
	eventually(t, waitLimit, "the node is back", isReady(t, "node1", "True"))
	eventually(t, waitLimit, "its pod answers", func() error { return ping(t, namespace, "allowed", "server") })
}

func TestAPausedKubeletLeavesItsPodsRunning(t *testing.T) {
	namespace := deploy(t)
	mustRun(t, "node", "pause-kubelet", "node1")
	if n := node1(t); !n.KubeletPaused {
		t.Errorf("paused: %+v", n)
	}
	eventually(t, waitLimit, "its pod still answers", func() error { return ping(t, namespace, "allowed", "server") })
	mustRun(t, "node", "resume-kubelet", "node1")
	if n := node1(t); n.KubeletPaused {
		t.Errorf("resumed: %+v", n)
	}
}

func TestCommandsRunInsideANode(t *testing.T) {
	mustRun(t, "up")
	out, _ := mustRun(t, "node", "exec", "node2", "--", "sh", "-c", "hostname; ip -o -4 addr show eth0; ctr -n k8s.io containers ls -q | wc -l")
	if !strings.HasPrefix(out, "node2\n") || !strings.Contains(out, "172.30.7.12/24") {
		t.Errorf("got %s", out)
	}
	_, _, err := try(t, "node", "exec", "node2", "--", "sh", "-c", "exit 7")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("the exit code isn't passed on: %v", err)
	}
}

func TestLoadedImagesOutliveARestartOfANode(t *testing.T) {
	mustRun(t, "up")
	program := filepath.Join(t.TempDir(), "pause")
	build := exec.Command("go", "build", "-o", program, "./components/pause")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	if out, err := exec.Command("go", "run", "../../deploy/image", "--binary", program, "--tag", "test/loaded:1", "--out", archive).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mustRun(t, "load", archive)
	mustRun(t, "node", "stop", "node3")
	mustRun(t, "node", "start", "node3")
	for _, n := range layout.Nodes() {
		if out, _ := mustRun(t, "node", "exec", n.Name, "--", "ctr", "-n", "k8s.io", "images", "ls", "-q"); !strings.Contains(out, "/test/loaded:1\n") {
			t.Errorf("%s has only\n%s", n.Name, out)
		}
	}
}
