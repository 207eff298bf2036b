//go:build e2e

package harness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	valkeygo "github.com/valkey-io/valkey-go"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
)

// Outside is a client on the machine that the local Kubernetes runs on, outside its
// pod network. It resolves the names of shards to an address of a Kubernetes node, as
// the user's DNS would, and notes whom it connects to.
type Outside struct {
	s *Space
	// Machine is the address of a Kubernetes node.
	Machine string
	// CA of the cluster; nil in plaintext.
	CA []byte

	mu     sync.Mutex
	dialed map[string]int
}

// Outside returns a client outside Kubernetes.
func (s *Space) Outside(ca []byte) *Outside {
	s.t.Helper()
	var nodes corev1.NodeList
	if err := s.Client.List(s.t.Context(), &nodes); err != nil {
		s.t.Fatalf("list the nodes of Kubernetes: %v", err)
	}
	for _, n := range nodes.Items {
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				return &Outside{s: s, Machine: a.Address, CA: ca, dialed: map[string]int{}}
			}
		}
	}
	s.t.Fatal("no node of Kubernetes has an address")
	return nil
}

// Dialed are the addresses that were connected to, host:port, sorted.
func (o *Outside) Dialed() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for address := range o.dialed {
		out = append(out, address)
	}
	slices.Sort(out)
	return out
}

func (o *Outside) dial(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	o.mu.Lock()
	o.dialed[address]++
	o.mu.Unlock()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(o.Machine, port))
	if err != nil || o.CA == nil {
		return conn, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(o.CA)
	encrypted := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err := encrypted.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS handshake for the name %s: %w", host, err)
	}
	return encrypted, nil
}

// Connect makes a cluster client that starts at the given addresses.
func (o *Outside) Connect(addresses ...string) valkeygo.Client {
	o.s.t.Helper()
	var c valkeygo.Client
	// The proxies on the machines follow Services with a delay that nobody can see.
	o.s.Eventually(fmt.Sprintf("a client outside connects to %v", addresses), 20*time.Second, func() error {
		var err error
		var encrypted *tls.Config // also tells the client which port of a node to use
		if o.CA != nil {
			encrypted = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		c, err = valkeygo.NewClient(valkeygo.ClientOption{
			InitAddress: addresses, TLSConfig: encrypted, DialCtxFn: o.dial, DisableCache: true, ConnWriteTimeout: 3 * time.Second,
			ClusterOption: valkeygo.ClusterOption{ShardsRefreshInterval: time.Second},
		})
		return err
	})
	o.s.t.Cleanup(c.Close)
	return c
}

// CLI runs valkey-cli on this machine, for which the names resolve to the Kubernetes
// node. Args begin with those of valkey-cli itself.
func (o *Outside) CLI(stdin string, names []string, args ...string) (string, error) {
	o.s.t.Helper()
	dir := o.s.t.TempDir()
	hosts := filepath.Join(dir, "hosts")
	lines := "127.0.0.1 localhost\n"
	for _, name := range names {
		lines += o.Machine + " " + name + "\n"
	}
	if err := os.WriteFile(hosts, []byte(lines), 0o644); err != nil {
		o.s.t.Fatal(err)
	}
	assets, err := clusterctl.Assets(o.s.t.Context())
	if err != nil {
		o.s.t.Fatal(err)
	}
	command := append([]string{filepath.Join(assets, "valkey-cli")}, args...)
	if o.CA != nil {
		ca := filepath.Join(dir, "ca.crt")
		if err := os.WriteFile(ca, o.CA, 0o644); err != nil {
			o.s.t.Fatal(err)
		}
		command = append([]string{command[0], "--tls", "--cacert", ca}, command[1:]...)
	}
	// A mount namespace of its own, so that the machine's names stay as they are.
	script := `mount --bind "$0" /etc/hosts && exec "$@"`
	run := exec.CommandContext(o.s.t.Context(), "unshare", append([]string{"-m", "sh", "-c", script, hosts}, command...)...)
	run.Stdin = strings.NewReader(stdin)
	out, err := run.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("valkey-cli on the host: %w: %s", err, out)
	}
	return string(out), nil
}
