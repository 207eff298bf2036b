//go:build linux

package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

// startLimit bounds each wait of the node's start; it takes seconds.
const startLimit = 2 * time.Minute

// Init is the node's first process. It builds the node, starts its programs
// and reaps until it is killed; it returns only with an error, and then the
// kernel ends everything else in the node.
func Init(file string, log *slog.Logger) error {
	spec, err := readSpec(file)
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil || line != ready {
		return fmt.Errorf("the program that starts the node died before the node was connected: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := spec.changeRoot(); err != nil {
		return err
	}
	if err := os.Setenv("PATH", path()); err != nil {
		return fmt.Errorf("set PATH: %w", err)
	}
	if err := unix.Sethostname([]byte(spec.Node.Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := configureNetwork(ctx, spec.Node); err != nil {
		return err
	}
	if err := writeConfig(spec.Node); err != nil {
		return err
	}
	s := supervisor{node: spec.Node, log: log, names: map[int]string{}}
	if err := s.start("containerd", "--config", "/etc/containerd.toml"); err != nil {
		return err
	}
	if err := awaitContainerd(ctx); err != nil {
		return err
	}
	if err := importImages(ctx, spec.Images); err != nil {
		return err
	}
	log.Info("images are loaded", "count", len(spec.Images))
	for _, argv := range daemons(spec.Node) {
		if err := s.start(argv[0], argv[1:]...); err != nil {
			return err
		}
	}
	go s.startPolicies()
	return s.reap()
}

// path is where the node's programs are found, from inside.
func path() string {
	return partsDir + "/bin0:" + partsDir + "/bin1:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

func run(ctx context.Context, argv ...string) error {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// configureNetwork gives the node its address, routes to the other nodes' pods
// and the one translation rule: pods that leave the pod network, for the API
// server or a NodePort, take the node's address.
func configureNetwork(ctx context.Context, n layout.Node) error {
	commands := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "addr", "add", n.IP() + "/24", "dev", "eth0"},
		{"ip", "link", "set", "eth0", "up"},
		{"ip", "route", "add", "default", "via", layout.HostIP},
		{"iptables", "-w", "-t", "nat", "-A", "POSTROUTING", "-s", layout.PodCIDR, "!", "-d", layout.PodCIDR, "-j", "MASQUERADE"},
	}
	for _, other := range layout.Nodes() {
		if other != n {
			commands = append(commands, []string{"ip", "route", "add", other.PodCIDR(), "via", other.IP()})
		}
	}
	for _, argv := range commands {
		if err := run(ctx, argv...); err != nil {
			return fmt.Errorf("configure the network: %w", err)
		}
	}
	rules, err := firewall()
	if err != nil {
		return err
	}
	nft := exec.CommandContext(ctx, "nft", "-f", "-")
	nft.Stdin = strings.NewReader(rules)
	if out, err := nft.CombinedOutput(); err != nil {
		return fmt.Errorf("load the node's packet filter: %w: %s", err, strings.TrimSpace(string(out)))
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("let the node forward: %w", err)
	}
	// Pods on one node talk through its bridge; policies and Services apply to
	// them only if the bridge shows its packets to iptables.
	err = os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("1"), 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the kernel has no br_netfilter; load that module on the host and try again")
	}
	if err != nil {
		return fmt.Errorf("let iptables see bridged packets: %w", err)
	}
	return nil
}

func awaitContainerd(ctx context.Context) error {
	for {
		err := run(ctx, "ctr", "version")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd doesn't answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// importImages loads the archives once; containerd keeps them over a stop and
// a start of the node.
func importImages(ctx context.Context, archives []string) error {
	const done = "/var/lib/containerd/kubectl-valkey-images"
	list := strings.Join(archives, "\n")
	if was, err := os.ReadFile(done); err == nil && string(was) == list {
		return nil
	}
	for i := range archives {
		if err := run(ctx, "ctr", "-n", "k8s.io", "images", "import", imagePath(i)); err != nil {
			return fmt.Errorf("load %s: %w", archives[i], err)
		}
	}
	if err := os.WriteFile(done, []byte(list), 0o644); err != nil {
		return fmt.Errorf("note the loaded images: %w", err)
	}
	return nil
}

// supervisor starts the node's programs and waits for them. It restarts
// nothing: a test that meets a dead kubelet should see it, in `status` and in
// the node's log.
type supervisor struct {
	node layout.Node
	log  *slog.Logger

	mu    sync.Mutex
	names map[int]string
}

// startPolicies starts kube-router as soon as the kubelet has registered the
// node: kube-router gives up on a node that the API server doesn't know.
func (s *supervisor) startPolicies() {
	for {
		err := registered(s.node)
		if err == nil {
			break
		}
		s.log.Info("waiting for the node's registration before starting kube-router", "err", err)
		<-time.After(200 * time.Millisecond)
	}
	argv := policyDaemon(s.node)
	if err := s.start(argv[0], argv[1:]...); err != nil {
		s.log.Error("NetworkPolicies are not enforced", "err", err)
	}
}

func registered(n layout.Node) error {
	config, err := clientcmd.BuildConfigFromFlags("", confDir+"/kube-router.kubeconfig")
	if err != nil {
		return fmt.Errorf("read the kubeconfig of kube-router: %w", err)
	}
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	_, err = client.CoreV1().Nodes().Get(context.Background(), n.Name, metav1.GetOptions{})
	return err
}

// start uses no exec.Cmd: the reaper, which waits for any child, would take
// its exit code away from it.
func (s *supervisor) start(name string, args ...string) error {
	program, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("find %s in the node: %w", name, err)
	}
	logFile, err := os.OpenFile(filepath.Join(nodeLogs, s.node.Name+"-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer logFile.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer null.Close()
	s.mu.Lock() // so that the reaper knows the name of what it may reap at once
	defer s.mu.Unlock()
	process, err := os.StartProcess(program, append([]string{program}, args...), &os.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []*os.File{null, logFile, logFile}, Sys: &unix.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	s.names[process.Pid] = name
	s.log.Info("started", "program", name, "pid", strconv.Itoa(process.Pid))
	return process.Release()
}

// reap waits for every child, the orphans of the node included.
func (s *supervisor) reap() error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("nothing is left in the node: %w", err)
		}
		name := s.forget(pid)
		if name == "" {
			continue
		}
		s.log.Error("ended and is not restarted", "program", name, "how", describe(status))
		if name == "containerd" {
			return errors.New("containerd ended: the node is of no use without it")
		}
	}
}

func (s *supervisor) forget(pid int) (name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name = s.names[pid]
	delete(s.names, pid)
	return name
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return "exit code " + strconv.Itoa(status.ExitStatus())
}
