//go:build e2e && linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

func TestUpIsQuickWhenTheClusterIsHealthy(t *testing.T) {
	mustRun(t, "up")
	first := status(t)
	if first.Health != clusterctl.StateHealthy || len(first.Problems) > 0 {
		t.Fatalf("after up the cluster is %s: %v", first.Health, first.Problems)
	}
	begin := time.Now()
	_, said := mustRun(t, "up")
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the second up took %s", took)
	}
	if !strings.Contains(said, "already up") {
		t.Errorf("the second up said:\n%s", said)
	}
	second := status(t)
	if first.ControlPlane[1].PID != second.ControlPlane[1].PID || first.Nodes[0].PID != second.Nodes[0].PID {
		t.Error("the second up replaced a healthy cluster")
	}
	var zones []string
	for _, n := range second.Nodes {
		zones = append(zones, n.Zone)
	}
	if !slices.Equal(zones, []string{"a", "b", "c"}) {
		t.Errorf("the zones are %v", zones)
	}
}

func TestDownLeavesNothingAndTouchesNobodyElse(t *testing.T) {
	mustRun(t, "down")
	before := netns(t)
	alive := foreigners(t)
	for ns := range netns(t) {
		before[ns] = true
	}
	settings := kernelSettings(t)
	mustRun(t, "up")
	// What is looked for below is there to be found.
	seen := strings.Join(leftovers(t, before), "\n")
	for _, kind := range []string{"/sys/fs/cgroup/", "/sys/class/net/kv-br0", "/sys/class/net/kv-node3", layout.StateDir, "process ", "network namespace "} {
		if !strings.Contains(seen, kind) {
			t.Errorf("no %s while the cluster is up:\n%s", kind, seen)
		}
	}
	mustRun(t, "down")
	if after := kernelSettings(t); !maps.Equal(settings, after) {
		t.Errorf("the kernel's settings were %v and are %v", settings, after)
	}
	if left := leftovers(t, before); len(left) > 0 {
		t.Errorf("down left:\n%s", strings.Join(left, "\n"))
	}
	alive()
	if _, said := mustRun(t, "down"); !strings.Contains(said, "nothing") {
		t.Errorf("a second down said %q", said)
	}
}

// kernelSettings are those that kubelets change.
func kernelSettings(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward"} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			t.Fatal(err)
		}
		values[name] = string(value)
	}
	return values
}

// foreigners makes things of somebody else's that look like the cluster's, and
// returns a check that they are still there.
func foreigners(t *testing.T) (alive func()) {
	t.Helper()
	must := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
	}
	_, statErr := os.Stat("/run/netns")
	must("ip", "netns", "add", "kv-foreign")
	t.Cleanup(func() {
		must("ip", "netns", "del", "kv-foreign")
		if errors.Is(statErr, fs.ErrNotExist) {
			must("umount", "/run/netns")
			must("rmdir", "/run/netns")
		}
	})
	must("ip", "link", "add", "kv-other", "type", "veth", "peer", "name", "kv-other-peer")
	t.Cleanup(func() { must("ip", "link", "del", "kv-other") })

	mountPoint := t.TempDir()
	must("mount", "-t", "tmpfs", "foreign", mountPoint)
	t.Cleanup(func() { must("umount", mountPoint) })

	group := "/sys/fs/cgroup/pids/kubectl-valkey-foreign"
	if _, err := os.Stat("/sys/fs/cgroup/pids"); err != nil {
		group = "/sys/fs/cgroup/kubectl-valkey-foreign"
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	ended := foreignProcess(t, group)
	return func() {
		t.Helper()
		for _, path := range []string{"/run/netns/kv-foreign", "/sys/class/net/kv-other", group} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("somebody else's thing is gone: %v", err)
			}
		}
		if err := exec.Command("mountpoint", "-q", mountPoint).Run(); err != nil {
			t.Errorf("somebody else's mount is gone: %v", err)
		}
		select {
		case <-ended:
			t.Error("somebody else's process is dead")
		default:
		}
	}
}

// foreignProcess runs, in that cgroup, what is called like a node's program and
// has namespaces of its own. The channel is closed when it ends.
func foreignProcess(t *testing.T, group string) (ended chan struct{}) {
	t.Helper()
	kubelet := exec.Command("sleep", "infinity")
	kubelet.Args[0] = "/opt/kubectl-valkey/bin0/kubelet"
	kubelet.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID}
	if err := kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_ = kubelet.Wait() // killed below
	}()
	t.Cleanup(func() {
		_ = kubelet.Process.Kill()
		<-ended
		eventually(t, waitLimit, "the foreign cgroup is removed", func() error { return os.Remove(group) })
	})
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, kubelet.Process.Pid), 0o644); err != nil {
		t.Fatal(err)
	}
	return ended
}

func present(path string) func() error {
	return func() error { _, err := os.Stat(path); return err }
}

// moments of a start, each told by what can be seen from outside.
var moments = map[string]func() error{
	"state is written":      present(filepath.Join(layout.StateDir, "state.json")),
	"keys are written":      present(filepath.Join(layout.PKIDir(), "apiserver.key")),
	"bridge is there":       present("/sys/class/net/" + layout.Bridge),
	"etcd has data":         present(filepath.Join(layout.StateDir, "etcd", "member")),
	"API server logs":       present(layout.AuditLog()),
	"first node has begun":  present(filepath.Join(layout.Nodes()[0].Dir(), "spec.json")),
	"last node has a cable": present("/sys/class/net/" + layout.Nodes()[2].Veth()),
	"kubelet has begun":     present(filepath.Join(layout.LogDir, "node1-kubelet.log")),
	"policies are enforced": present(filepath.Join(layout.LogDir, "node3-kube-router.log")),
}

// killedAt starts the cluster and kills the command at that moment.
func killedAt(t *testing.T, moment func() error) {
	t.Helper()
	mustRun(t, "down")
	clearLogs(t)
	cmd, said := background(t, nil, program, "up")
	eventually(t, upLimit, "the moment comes", moment)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range said { // until it is dead
	}
	_ = cmd.Wait() // its exit code says what was just done to it
}

func clearLogs(t *testing.T) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(layout.LogDir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDownCleansWhatAKilledUpLeft(t *testing.T) {
	mustRun(t, "down")
	before := netns(t)
	for name, moment := range moments {
		t.Run(name, func(t *testing.T) {
			killedAt(t, moment)
			mustRun(t, "down")
			if left := leftovers(t, before); len(left) > 0 {
				t.Errorf("down left:\n%s", strings.Join(left, "\n"))
			}
		})
	}
}

func TestUpStartsAgainAfterAKilledUp(t *testing.T) {
	for name, moment := range moments {
		t.Run(name, func(t *testing.T) {
			killedAt(t, moment)
			mustRun(t, "up")
			if st := status(t); st.Health != clusterctl.StateHealthy {
				t.Errorf("the cluster is %s: %v", st.Health, st.Problems)
			}
		})
	}
}

func TestInterruptedUpCleansUpItself(t *testing.T) {
	mustRun(t, "down")
	before := netns(t)
	clearLogs(t)
	cmd, said := background(t, nil, program, "up")
	eventually(t, upLimit, "nodes start", moments["first node has begun"])
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range said {
		lines = append(lines, line)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the interrupted command calls itself successful")
	}
	if !slices.Contains(lines, "error: interrupted") {
		t.Errorf("it said %q", lines)
	}
	if left := leftovers(t, before); len(left) > 0 {
		t.Errorf("it left:\n%s", strings.Join(left, "\n"))
	}
}

func TestUpEndsWithAKilledGoRun(t *testing.T) {
	mustRun(t, "down")
	before := netns(t)
	clearLogs(t)
	cmd, _ := background(t, nil, "go", "run", ".", "up")
	eventually(t, upLimit, "nodes start", moments["first node has begun"])
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	eventually(t, waitLimit, "the program that go run started cleans up and ends", func() error {
		if left := leftovers(t, before); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}

func TestTwoUpsAtOnceMakeOneCluster(t *testing.T) {
	mustRun(t, "down")
	first, firstSaid := background(t, nil, program, "up")
	second, secondSaid := background(t, nil, program, "up")
	var lines []string
	for line := range firstSaid {
		lines = append(lines, line)
	}
	for line := range secondSaid {
		lines = append(lines, line)
	}
	if err := errors.Join(first.Wait(), second.Wait()); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(lines, "\n"))
	}
	said := strings.Join(lines, "\n")
	for _, want := range []string{"waiting for it", "already up"} {
		if strings.Count(said, want) != 1 {
			t.Errorf("not once %q in:\n%s", want, said)
		}
	}
}

func TestUpReplacesAClusterThatIsHalfDead(t *testing.T) {
	mustRun(t, "up")
	before := status(t)
	if err := syscall.Kill(before.ControlPlane[1].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "status sees the dead API server", func() error {
		if st := status(t); st.Health != clusterctl.StateDegraded {
			return fmt.Errorf("health is %s", st.Health)
		}
		return nil
	})
	mustRun(t, "up")
	if st := status(t); st.Health != clusterctl.StateHealthy {
		t.Errorf("the cluster is %s: %v", st.Health, st.Problems)
	}
}

func TestKilledFillingOfTheCacheLeavesNothing(t *testing.T) {
	for _, command := range []string{"up", "assets"} {
		t.Run(command, func(t *testing.T) {
			mustRun(t, "down")
			before := netns(t)
			cache := t.TempDir()
			cmd, said := background(t, []string{layout.CacheEnv + "=" + cache}, program, command)
			eventually(t, upLimit, "debootstrap has unpacked something", func() error {
				found, err := filepath.Glob(filepath.Join(cache, ".unfinished-*", "usr", "bin"))
				if err == nil && len(found) == 0 {
					err = errors.New("nothing yet")
				}
				return err
			})
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for range said { // until it is dead
			}
			_ = cmd.Wait() // killed
			mustRun(t, "down")
			if left := leftovers(t, before); len(left) > 0 {
				t.Errorf("down left:\n%s", strings.Join(left, "\n"))
			}
			eventually(t, waitLimit, "nothing works on the cache any more", func() error { return unused(cache) })
		})
	}
}

// unused fails while there is a mount below the directory or a process that
// names it.
func unused(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if strings.Contains(string(mounts), dir) {
		return fmt.Errorf("there is a mount:\n%s", mounts)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, path := range processes {
		if cmdline, err := os.ReadFile(path); err == nil && strings.Contains(string(cmdline), dir) {
			return fmt.Errorf("there is a process: %q", cmdline)
		}
	}
	return nil
}
