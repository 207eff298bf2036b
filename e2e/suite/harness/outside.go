//go:build e2e

package harness

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
)

// Outside is a machine outside Kubernetes and its pod network, on which clients run. It
// is a network namespace of this one, plugged into the network of the Kubernetes nodes,
// with a hosts file that leads the names of shards to an address of a Kubernetes node, as
// the user's DNS would. It knows no other name.
type Outside struct {
	s *Space
	// Machine is the address of a Kubernetes node.
	Machine string
	// CA of the cluster; nil in plaintext.
	CA []byte

	dir string
	// pid is of the process whose namespaces these are.
	pid int
	// address of the machine, and the host's end of its cable.
	address net.IP
	cable   string
}

// machines counts those of this process, for an address of its own for each.
var machines atomic.Int32

// Outside returns a machine outside Kubernetes that knows these names.
func (s *Space) Outside(ca []byte, names ...string) *Outside {
	s.t.Helper()
	o := &Outside{s: s, Machine: s.Machine(), CA: ca, dir: s.t.TempDir()}
	lines := "127.0.0.1 localhost\n"
	for _, name := range names {
		lines += o.Machine + " " + name + "\n"
	}
	o.write("hosts", []byte(lines))
	if ca != nil {
		o.write("ca.crt", ca)
	}
	if err := o.start(); err != nil {
		s.t.Fatalf("make a machine outside Kubernetes: %v", err)
	}
	return o
}

// Machine is the address of a Kubernetes node.
func (s *Space) Machine() string {
	s.t.Helper()
	var nodes corev1.NodeList
	if err := s.Client.List(s.t.Context(), &nodes); err != nil {
		s.t.Fatalf("list the nodes of Kubernetes: %v", err)
	}
	for _, n := range nodes.Items {
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				return a.Address
			}
		}
	}
	s.t.Fatal("no node of Kubernetes has an address")
	return ""
}

func (o *Outside) write(name string, data []byte) {
	o.s.t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), data, 0o644); err != nil {
		o.s.t.Fatal(err)
	}
}

// start makes the namespaces. They last as long as the process in them, which ends with
// its input: with the test, however that ends. On another Kubernetes than the local one
// the network is this machine's.
func (o *Outside) start() error {
	script := `mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/resolv.conf" /etc/resolv.conf && echo made && exec cat`
	flags := "-m"
	var host *net.IPNet
	var bridge string
	if o.s.Local {
		var err error
		if bridge, host, err = networkOf(o.Machine); err != nil {
			return err
		}
		flags = "-mn"
		o.write("resolv.conf", []byte("nameserver "+host.IP.String()+"\noptions attempts:1 timeout:1\n"))
	} else {
		o.write("resolv.conf", []byte("nameserver 127.0.0.1\n"))
	}
	holder := exec.Command("unshare", flags, "sh", "-c", script, o.dir)
	holder.Stderr = os.Stderr
	in, err := holder.StdinPipe()
	if err != nil {
		return err
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := holder.Start(); err != nil {
		return err
	}
	o.s.t.Cleanup(func() {
		in.Close()
		_ = holder.Wait() // it has nothing to say
	})
	if _, err := out.Read(make([]byte, len("made\n"))); err != nil {
		return fmt.Errorf("namespaces were not made: %w", err)
	}
	o.pid = holder.Process.Pid
	if !o.s.Local {
		return nil
	}
	return o.plug(bridge, host)
}

// networkOf finds the interface of this machine that is in the network of an address.
func networkOf(address string) (string, *net.IPNet, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return "", nil, err
	}
	for _, d := range devices {
		addresses, err := d.Addrs()
		if err != nil {
			return "", nil, err
		}
		for _, a := range addresses {
			if own, ok := a.(*net.IPNet); ok && own.IP.To4() != nil && own.Contains(net.ParseIP(address)) {
				return d.Name, own, nil
			}
		}
	}
	return "", nil, fmt.Errorf("no interface of this machine is in the network of %s", address)
}

// plug connects the namespace with the bridge of the Kubernetes nodes.
func (o *Outside) plug(bridge string, host *net.IPNet) error {
	n := machines.Add(1)
	o.address = append(net.IP{}, host.IP.To4()...)
	o.address[3] = byte(100 + n%100) // the nodes have the low ones
	o.cable = "vkout" + strconv.Itoa(o.pid)
	ones, _ := host.Mask.Size()
	pid := strconv.Itoa(o.pid)
	for _, argv := range [][]string{
		{"ip", "link", "add", o.cable, "type", "veth", "peer", "name", "eth0", "netns", pid},
		{"ip", "link", "set", o.cable, "master", bridge, "up"},
		o.enter("ip", "addr", "add", fmt.Sprintf("%s/%d", o.address, ones), "dev", "eth0"),
		o.enter("ip", "link", "set", "lo", "up"),
		o.enter("ip", "link", "set", "eth0", "up"),
		// What is meant for elsewhere has to leave the namespace, to be seen.
		o.enter("ip", "route", "add", "default", "via", host.IP.String()),
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
		}
	}
	return nil
}

// enter is a command line that runs another one on the machine.
func (o *Outside) enter(argv ...string) []string {
	pid := strconv.Itoa(o.pid)
	out := []string{"nsenter", "--mount=/proc/" + pid + "/ns/mnt"}
	if o.s.Local {
		out = append(out, "--net=/proc/"+pid+"/ns/net")
	}
	return append(append(out, "--"), argv...)
}

// Run runs a program on the machine.
func (o *Outside) Run(ctx context.Context, stdin string, argv ...string) (string, error) {
	argv = o.enter(argv...)
	run := exec.CommandContext(ctx, argv[0], argv[1:]...)
	run.WaitDelay = 5 * time.Second
	run.Stdin = strings.NewReader(stdin)
	out, err := run.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}

// CLI runs valkey-cli on the machine. Args begin with those of valkey-cli itself.
func (o *Outside) CLI(ctx context.Context, stdin string, args ...string) (string, error) {
	assets, err := clusterctl.Assets(ctx)
	if err != nil {
		return "", err
	}
	argv := []string{filepath.Join(assets, "valkey-cli")}
	if o.CA != nil {
		argv = append(argv, "--tls", "--cacert", filepath.Join(o.dir, "ca.crt"))
	}
	out, err := o.Run(ctx, stdin, append(argv, args...)...)
	if err != nil {
		return out, fmt.Errorf("valkey-cli outside: %w", err)
	}
	return out, nil
}

// StartWriter starts the writer on the machine, at the address of any node, and returns
// when it writes.
func (o *Outside) StartWriter(address string, args ...string) *Writer {
	o.s.t.Helper()
	return o.startClient(append(o.writer(address), args...))
}

// NodeClient is the environment variable with the directory in which the Makefile
// installs the client of e2e/nodeclient.
const NodeClient = "E2E_NODE_CLIENT"

// StartNodeClient starts the client of e2e/nodeclient, which does and says what the
// writer does. Without Node.js it returns nil, and the test says so.
func (o *Outside) StartNodeClient(address string, args ...string) *Writer {
	o.s.t.Helper()
	argv := o.nodeClient(address)
	if argv == nil {
		o.s.CannotCheckWithout(o.s.t, "a client written in JavaScript", "Node.js with npm on this machine")
		return nil
	}
	return o.startClient(append(argv, args...))
}

// WriteOnce has every client that can be had write one key through an address, and
// returns what each says, by its make.
func (o *Outside) WriteOnce(ctx context.Context, address string) map[string]error {
	o.s.t.Helper()
	out := map[string]error{}
	for client, argv := range map[string][]string{"valkey-go": o.writer(address), "iovalkey": o.nodeClient(address)} {
		if argv != nil {
			_, out[client] = o.Run(ctx, "", append(argv, "--preload", "1", "--every", "1000ms")...)
		}
	}
	return out
}

// writer is the command line of the writer.
func (o *Outside) writer(address string) []string {
	o.s.t.Helper()
	file := filepath.Join(o.dir, "writer")
	if _, err := os.Stat(file); err != nil {
		if err := os.WriteFile(file, []byte(o.s.build("./e2e/writer")), 0o755); err != nil {
			o.s.t.Fatal(err)
		}
	}
	return append([]string{file, "--address", address}, o.trust()...)
}

// nodeClient is the command line of the client of e2e/nodeclient, or nil without Node.js.
func (o *Outside) nodeClient(address string) []string {
	modules := os.Getenv(NodeClient)
	if modules == "" {
		return nil
	}
	script := filepath.Join(o.s.Root, "e2e", "nodeclient", "client.js")
	path := "NODE_PATH=" + filepath.Join(modules, "node_modules")
	return append([]string{"env", path, "node", script, "--address", address}, o.trust()...)
}

// trust is how clients are told of the authority.
func (o *Outside) trust() []string {
	if o.CA == nil {
		return nil
	}
	return []string{"--ca", filepath.Join(o.dir, "ca.crt")}
}

func (o *Outside) startClient(argv []string) *Writer {
	o.s.t.Helper()
	argv = o.enter(argv...)
	return &Writer{begin(o.s.t, writerReady, func(p pipes) error {
		run := exec.CommandContext(o.s.t.Context(), argv[0], argv[1:]...)
		run.WaitDelay = 5 * time.Second
		run.Stdin, run.Stdout, run.Stderr = p.in, p.out, p.err
		return run.Run()
	})}
}
