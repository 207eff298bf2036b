//go:build e2e

package suite

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

const outsideDomain = "valkey.test"

// names directs clients to the names of shards.
func names() *v1alpha1.ExternalAccess {
	return &v1alpha1.ExternalAccess{Enabled: true, Domain: outsideDomain, PreferredEndpointType: v1alpha1.EndpointHostname}
}

// waitOutside waits until clients outside reach the cluster as wished.
func waitOutside(s *harness.Space, words ...string) *v1alpha1.ValkeyCluster {
	var c *v1alpha1.ValkeyCluster
	s.Eventually("the cluster can be reached from outside", 4*time.Minute, func() error {
		c = s.Get("c")
		if err := harness.Settled(c); err != nil {
			return err
		}
		got := harness.Condition(c, v1alpha1.ConditionExternalAccessReady)
		if got.Status != metav1.ConditionTrue || got.ObservedGeneration != c.Generation {
			return fmt.Errorf("ExternalAccessReady is %s: %s: %s", got.Status, got.Reason, got.Message)
		}
		return harness.Contains(got.Message, words...)
	})
	return c
}

// addresses are the ways to each node from outside, by the cluster's status.
func addresses(c *v1alpha1.ValkeyCluster) []string {
	var out []string
	for _, e := range c.Status.ExternalEndpoints {
		for _, port := range e.Ports {
			out = append(out, net.JoinHostPort(e.Hostname, strconv.Itoa(int(port))))
		}
	}
	slices.Sort(out)
	return out
}

// outsideNames are what the names of so many shards come to, with the prefixes that the
// tests use.
func outsideNames(shards int) []string {
	var out []string
	for _, prefix := range []string{"shard", "cache"} {
		for i := range shards {
			out = append(out, fmt.Sprintf("%s-%d.%s", prefix, i, outsideDomain))
		}
	}
	return out
}

// S1-01, S1-86, S1-88, S1-125, E-01, E-11: clients of three makes on a machine outside
// use every slot through node ports, in plaintext and with verified names, through a
// failover, a roll and a scale-out. What leaves the machine shows that they are never led
// to an address or a name inside.
func TestClientsOutsideUseEverySlotThroughNodePorts(t *testing.T) {
	for _, encryption := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", encryption), func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t).Space(t, 9)
			c := s.Cluster("c", 3, 1)
			ownConfig(s, c)
			c.Spec.ExternalAccess = names()
			var ca []byte
			var inside []string
			if encryption {
				secret := s.TLSSecret("cert", harness.NewAuthority(t), append(s.Names("c"), "*."+outsideDomain)...)
				ca = secret.Data["ca.crt"]
				s.Create(secret)
				c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
				inside = encrypted
			}
			s.Create(c)
			c = waitOutside(s, "clients are directed to the outside names")
			wantNodePorts(t, s, c)

			o := s.Outside(ca, append(outsideNames(4), strangeName)...)
			capture := newCapture(t, s, o)
			if encryption {
				wantVerifiedNames(t, o, c)
			}
			clients := startClients(t, s, o, c)
			clients.during("failover", func() {
				if r := s.Valkey("failover", "c", "--shard", "0"); r.Code != 0 {
					t.Fatal(r)
				}
			})
			clients.during("roll", func() {
				before := podUIDs(s)
				change(s, func(spec *v1alpha1.ValkeyConfigSpec) {
					memory := resource.MustParse("96Mi")
					spec.Resources = &v1alpha1.Resources{Memory: &memory}
				})
				waitRolled(s, before)
			})
			clients.during("scale-out", func() {
				s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Shards = 4 })
			})
			c = s.Get("c")
			clients.stop(addresses(c))
			wantNodePorts(t, s, c)
			capture.want(t, c)
			wantInside(t, s.WaitFormed("c", 4, 1, inside...), s)
		})
	}
}

// strangeName leads to the machine with the ports, but is in no certificate.
const strangeName = "cache.elsewhere.example"

// wantVerifiedNames checks that clients take no server for another: at a name that leads
// to a right port, but is not in its certificate, they send nothing.
func wantVerifiedNames(t *testing.T, o *harness.Outside, c *v1alpha1.ValkeyCluster) {
	t.Helper()
	address := net.JoinHostPort(strangeName, strconv.Itoa(int(c.Status.ExternalEndpoints[0].Ports[0])))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for client, err := range o.WriteOnce(ctx, address) {
		if err == nil {
			t.Errorf("%s writes to %s, which is in no certificate", client, address)
		} else if wrong := harness.Contains(err.Error(), strangeName, "certificate"); wrong != nil {
			t.Errorf("%s: %v", client, wrong)
		}
	}
}

// wantNodePorts checks that each port leads to the pod that stands for its index.
func wantNodePorts(t *testing.T, s *harness.Space, c *v1alpha1.ValkeyCluster) {
	t.Helper()
	if len(c.Status.ExternalEndpoints) != int(c.Spec.Shards) {
		t.Fatalf("endpoints %+v", c.Status.ExternalEndpoints)
	}
	for _, e := range c.Status.ExternalEndpoints {
		service := &corev1.Service{}
		if err := s.Client.Get(t.Context(), s.Key(e.Service), service); err != nil {
			t.Fatal(err)
		}
		for i, port := range service.Spec.Ports {
			if port.NodePort != e.NodePorts[i] || port.NodePort != e.Ports[i] {
				t.Errorf("Service %s has node port %d, status says %v", e.Service, port.NodePort, e.NodePorts)
			}
		}
	}
}

// wantInside checks that the servers reach each other at their pods' addresses.
func wantInside(t *testing.T, servers []harness.Server, s *harness.Space) {
	t.Helper()
	ips := map[string]bool{}
	for _, p := range s.Pods("c") {
		ips[p.Status.PodIP] = true
	}
	for _, server := range servers {
		host, port := server.Info["master_host"], server.Info["master_port"]
		if host != "" && (!ips[host] || port != "6379") {
			t.Errorf("%s replicates from %s:%s", server.Pod.Name, host, port)
		}
		for _, m := range server.Members {
			if !ips[m.IP] || m.BusPort != 16379 {
				t.Errorf("%s lists %s at %s, bus port %d", server.Pod.Name, m.ID, m.IP, m.BusPort)
			}
		}
	}
}
