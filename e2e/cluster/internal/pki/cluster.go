package pki

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

// users of the API server, by the name of their kubeconfig. kube-router and
// kube-proxy have names of their own so that the audit log tells them apart.
var users = []struct {
	file, name string
	groups     []string
}{
	{"admin", "admin", []string{"system:masters"}},
	{"kube-controller-manager", "system:kube-controller-manager", nil},
	{"kube-scheduler", "system:kube-scheduler", nil},
	{"kube-proxy", "system:kube-proxy", nil},
	{"kube-router", "kube-router", []string{"system:masters"}},
}

// WriteCluster makes everything that needs a key: the API server's files in
// layout.PKIDir, kubeconfigs in layout.ConfDir, and each node's files in the
// conf folder of its own directory.
func WriteCluster() error {
	a, err := New("kubectl-valkey local cluster")
	if err != nil {
		return err
	}
	if err := writeServer(a); err != nil {
		return err
	}
	issued := map[string]Pair{}
	for _, u := range users {
		if issued[u.file], err = a.Issue(u.name, u.groups, nil); err != nil {
			return err
		}
		if err := a.WriteKubeconfig(filepath.Join(layout.ConfDir(), u.file+".kubeconfig"), layout.APIServerURL(), issued[u.file]); err != nil {
			return err
		}
	}
	for _, n := range layout.Nodes() {
		if err := writeNode(a, n, issued); err != nil {
			return err
		}
	}
	return nil
}

func writeServer(a *Authority) error {
	dir := layout.PKIDir()
	if err := a.Pair().Write(dir, "ca"); err != nil {
		return err
	}
	private, public, err := SigningKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "sa.key"), private, 0o600); err != nil {
		return fmt.Errorf("write the token key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sa.pub"), public, 0o644); err != nil {
		return fmt.Errorf("write the token key: %w", err)
	}
	server, err := a.Issue("kube-apiserver", nil, []string{
		"127.0.0.1", layout.HostIP, layout.KubernetesServiceIP, "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + layout.ClusterDomain,
	})
	if err != nil {
		return err
	}
	if err := server.Write(dir, "apiserver"); err != nil {
		return err
	}
	client, err := a.Issue("kube-apiserver-kubelet-client", []string{"system:masters"}, nil)
	if err != nil {
		return err
	}
	return client.Write(dir, "kubelet-client")
}

func writeNode(a *Authority, n layout.Node, issued map[string]Pair) error {
	dir := filepath.Join(n.Dir(), "conf")
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), a.CertPEM(), 0o644); err != nil {
		return fmt.Errorf("write the authority for %s: %w", n.Name, err)
	}
	pair, err := a.Issue("system:node:"+n.Name, []string{"system:nodes"}, []string{n.Name, n.IP()})
	if err != nil {
		return err
	}
	if err := pair.Write(dir, "kubelet"); err != nil {
		return err
	}
	if err := a.WriteKubeconfig(filepath.Join(dir, "kubelet.kubeconfig"), layout.APIServerURL(), pair); err != nil {
		return err
	}
	for _, name := range []string{"kube-proxy", "kube-router"} {
		if err := a.WriteKubeconfig(filepath.Join(dir, name+".kubeconfig"), layout.APIServerURL(), issued[name]); err != nil {
			return err
		}
	}
	return nil
}
