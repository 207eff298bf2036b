//go:build e2e

package suite

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// door is the way from outside to one server.
type door struct {
	address, name string
	roots         *x509.CertPool // nil in plaintext
}

// doors returns the way to each server that keeps the client's address: through the
// machine on which the server runs.
func doors(t *testing.T, s *harness.Space, roots *x509.CertPool) []door {
	t.Helper()
	endpoints := map[int32]v1alpha1.ExternalEndpoint{}
	for _, e := range s.Get("c").Status.ExternalEndpoints {
		endpoints[e.ShardIndex] = e
	}
	machines := map[string]string{}
	for _, pod := range s.Pods("c") {
		machines[pod.Name] = pod.Status.HostIP
	}
	var out []door
	for _, n := range s.Nodes("c") {
		e := endpoints[n.Spec.ShardIndex]
		if int(n.Spec.NodeIndex) >= len(e.Ports) || machines[n.Name] == "" {
			t.Fatalf("node %s has no way from outside: %+v", n.Name, e)
		}
		out = append(out, door{net.JoinHostPort(machines[n.Name], strconv.Itoa(int(e.Ports[n.Spec.NodeIndex]))), e.Hostname, roots})
	}
	return out
}

// ping connects to a server from outside and has it answer.
func (d door) ping() (err error) {
	const patience = 3 * time.Second
	conn, err := net.DialTimeout("tcp", d.address, patience)
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return errors.Join(err, conn.Close())
	}
	if d.roots != nil {
		conn = tls.Client(conn, &tls.Config{ServerName: d.name, RootCAs: d.roots, MinVersion: tls.VersionTLS12})
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	// Without a password the server answers too, if only to ask for one.
	if err == nil && !strings.HasPrefix(line, "+PONG") && !strings.HasPrefix(line, "-NOAUTH") {
		err = fmt.Errorf("it answers %q", line)
	}
	return err
}

// N-03: clients outside Kubernetes pass the generated policies when --external-cidr
// names their addresses, and not otherwise; without policies they pass again. The
// rows of the matrix hold in either case, in plaintext and with TLS.
func TestNetworkPoliciesAdmitClientsOutsideByAddress(t *testing.T) {
	t.Parallel()
	for name, encryption := range map[string]bool{"plaintext": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t).Space(t, 8)
			if !s.Local {
				s.CannotCheck(t, "policies for clients outside, whose address has to be known")
				return
			}
			c := s.Cluster("c", 2, 1)
			c.Spec.ExternalAccess = names()
			c.Spec.ExternalAccess.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			var roots *x509.CertPool
			if encryption {
				secret := s.TLSSecret("cert", harness.NewAuthority(t), append(s.Names("c"), "*."+outsideDomain)...)
				roots = x509.NewCertPool()
				roots.AppendCertsFromPEM(secret.Data["ca.crt"])
				s.Create(secret)
				c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
			}
			s.Create(c)
			waitOutside(s)
			all := doors(t, s, roots)
			each := func(when string, open bool) {
				t.Helper()
				for _, d := range all {
					s.Eventually(fmt.Sprintf("%s: %s lets pass: %t", when, d.address, open), time.Minute, func() error {
						if err := d.ping(); (err == nil) != open {
							return fmt.Errorf("it let pass: %t: %w", !open, err)
						}
						return nil
					})
				}
			}
			flows := func(args ...string) {
				t.Helper()
				if r := s.Valkey(append([]string{"networkpolicy", "c", "--egress", "--test"}, args...)...); r.Code != 0 {
					t.Errorf("the rows of the matrix: %s", r)
				}
			}
			each("before", true)
			r := s.Valkey("networkpolicy", "c", "--egress", "--default-deny", "--apply")
			if r.Code != 0 || harness.Contains(r.Stderr, "nothing is admitted from outside", "--external-cidr") != nil {
				t.Errorf("policies without addresses: %s", r)
			}
			each("with policies that name nobody outside", false)
			flows()
			admitted := []string{"--external-cidr", clusterctl.HostIP() + "/32"}
			valkey(t, s, append([]string{"networkpolicy", "c", "--egress", "--default-deny", "--apply"}, admitted...)...)
			each("with policies that name this machine", true)
			flows(admitted...)
			valkey(t, s, "networkpolicy", "c", "--egress", "--default-deny", "--apply", "--external-cidr", "192.0.2.0/24")
			each("with policies that name another machine", false)
			if err := s.Client.DeleteAllOf(t.Context(), &networkingv1.NetworkPolicy{}, client.InNamespace(s.Name)); err != nil {
				t.Fatalf("delete the policies: %v", err)
			}
			each("without policies", true)
		})
	}
}
