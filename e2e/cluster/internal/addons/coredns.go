//go:build linux

// Package addons installs what runs inside of the cluster: its DNS.
package addons

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

//go:embed coredns.yaml
var corednsYAML string

func manifest() string {
	return strings.NewReplacer(
		"CLUSTER_DOMAIN", layout.ClusterDomain, "COREDNS_IMAGE", layout.CoreDNSImage, "DNS_SERVICE_IP", layout.DNSServiceIP,
	).Replace(corednsYAML)
}

// InstallDNS applies CoreDNS with the kubectl of the tools directory.
func InstallDNS(ctx context.Context, tools string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(tools, "kubectl"), "--kubeconfig="+layout.Kubeconfig(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install CoreDNS: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// AwaitDNS waits until a Service's name resolves in the network namespace of
// process pid: then CoreDNS, the pod network and kube-proxy work on its node.
func AwaitDNS(ctx context.Context, pid int) error {
	for {
		err := ResolveFrom(ctx, pid)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("DNS doesn't work: %w", errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ResolveFrom resolves the API server's Service once.
func ResolveFrom(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	resolver := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return dialIn(pid, net.JoinHostPort(layout.DNSServiceIP, "53"))
	}}
	name := "kubernetes.default.svc." + layout.ClusterDomain + "."
	ips, err := resolver.LookupIP(ctx, "ip4", name)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", name, err)
	}
	if len(ips) != 1 || ips[0].String() != layout.KubernetesServiceIP {
		return fmt.Errorf("%s resolved to %v instead of %s", name, ips, layout.KubernetesServiceIP)
	}
	return nil
}

// dialIn opens a UDP socket in another process's network namespace. A socket
// stays where it was made, so one thread goes there, dials, and ends: a locked
// thread that isn't unlocked isn't used again.
func dialIn(pid int, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			done <- result{err: err}
			return
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{err: err}
			return
		}
		conn, err := net.Dial("udp4", address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}
