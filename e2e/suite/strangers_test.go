//go:build e2e

package suite

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// leases is where a node of the local Kubernetes notes which pod addresses are taken.
const leases = "/run/cni/ipam/kubectl-valkey/"

// clusters whose pods get addresses that dead pods of the other had never mix.
// While a dead server is in their table the others try its address, and draw in
// whoever has it now; but a pod that was drawn in joins nobody else, so that no member
// of one cluster ever lists one of the other. Nothing else runs meanwhile, so that
// nobody else takes the addresses.
func TestClustersThatTakeOverAddressesNeverMix(t *testing.T) {
	e := harness.Start(t)
	if !e.Local {
		e.CannotCheck(t, "what becomes of clusters whose pods take over each other's addresses")
		return
	}
	rounds := 3
	if harness.Full() {
		rounds = 30
	}
	a, b := e.Space(t, 8), e.Space(t, 8)
	for _, s := range []*harness.Space{a, b} {
		s.Create(s.Cluster("c", 3, 1))
	}
	for _, s := range []*harness.Space{a, b} {
		s.WaitActive("c")
	}
	t.Cleanup(func() { cordon(t, a, "", false) })
	for round := range rounds {
		begin := time.Now()
		pause := func(s *harness.Space, paused bool) {
			s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = paused })
		}
		left, right := replicasOnOneHost(t, a, b, round)
		for s, lost := range map[*harness.Space]corev1.Pod{a: left.Pod, b: right.Pod} {
			pause(s, true)
			s.WaitCondition("c", v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonPaused)
			deletePod(s, lost, client.GracePeriodSeconds(0))
		}
		host, address := left.Pod.Spec.NodeName, left.Pod.Status.PodIP
		for _, ip := range []string{address, right.Pod.Status.PodIP} {
			waitFree(t, a, host, ip)
		}
		offer(t, host, address)
		cordon(t, b, host, true)
		pause(b, false)
		if !waitApart(t, b, host, address, a) {
			t.Errorf("round %d: no pod of the other cluster had address %s: this run proves too little", round+1, address)
		}
		cordon(t, b, host, false)
		pause(a, false)
		for _, s := range []*harness.Space{a, b} {
			s.WaitActive("c")
			s.WaitFormed("c", 3, 1)
		}
		t.Logf("round %d: address %s after %s", round+1, address, time.Since(begin).Round(100*time.Millisecond))
		a, b = b, a
	}
}

// cordon leaves new pods no Kubernetes node but one, or makes all usable again.
func cordon(t *testing.T, s *harness.Space, host string, others bool) {
	t.Helper()
	var hosts corev1.NodeList
	if err := s.Client.List(s.Background(), &hosts); err != nil {
		t.Fatal(err)
	}
	for _, n := range hosts.Items {
		before := n.DeepCopy()
		n.Spec.Unschedulable = others && n.Name != host
		if err := s.Client.Patch(s.Background(), &n, client.MergeFrom(before)); err != nil {
			t.Errorf("change node %s: %v", n.Name, err)
		}
	}
}

// waitFree waits until a Kubernetes node may give an address to another pod.
func waitFree(t *testing.T, s *harness.Space, host, address string) {
	t.Helper()
	s.Eventually("address "+address+" is free", time.Minute, func() error {
		taken, err := clusterctl.NodeExec(t.Context(), host, "ls", leases)
		if err == nil && slices.Contains(strings.Fields(taken), address) {
			err = fmt.Errorf("taken are %s", taken)
		}
		return err
	})
}

// replicasOnOneHost returns a replica of each cluster, both on one Kubernetes node. It
// is not the manager's, whose pod would remember for half a minute which pod next to
// it had the address.
func replicasOnOneHost(t *testing.T, a, b *harness.Space, round int) (left, right harness.Server) {
	t.Helper()
	manager, err := a.WaitForManager(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ofA, ofB := a.WaitFormed("c", 3, 1), b.WaitFormed("c", 3, 1)
	// Two that are replicas already, or else two that can be made ones.
	for _, made := range []bool{false, true} {
		for i := range ofA {
			left = ofA[(i+round)%len(ofA)]
			for _, right = range ofB {
				host := left.Pod.Spec.NodeName
				follow := left.Self().Role == topology.RoleReplica && right.Self().Role == topology.RoleReplica
				if host != manager.Spec.NodeName && host == right.Pod.Spec.NodeName && (made || follow) {
					return asReplica(t, a, left), asReplica(t, b, right)
				}
			}
		}
	}
	t.Fatalf("no node of one cluster is on one Kubernetes node with one of the other that is not %s", manager.Spec.NodeName)
	return left, right
}

// asReplica hands a shard over if the server is its primary.
func asReplica(t *testing.T, s *harness.Space, server harness.Server) harness.Server {
	t.Helper()
	if server.Self().Role == topology.RoleReplica {
		return server
	}
	if r := s.Valkey("failover", "c", "--shard", server.Pod.Labels[v1alpha1.LabelShardIndex]); r.Code != 0 {
		t.Fatal(r)
	}
	s.WaitActive("c")
	for _, now := range s.WaitFormed("c", 3, 1) {
		if now.Pod.Name == server.Pod.Name && now.Self().Role == topology.RoleReplica {
			return now
		}
	}
	t.Fatalf("pod %s is no replica after a failover of its shard", server.Pod.Name)
	return server
}

// offer makes an address the next that a pod on a Kubernetes node gets: they are
// given in turn.
func offer(t *testing.T, host, address string) {
	t.Helper()
	before := netip.MustParseAddr(address).Prev()
	if out, err := clusterctl.NodeExec(t.Context(), host, "sh", "-c", "printf "+before.String()+" >"+leases+"last_reserved_ip.0"); err != nil {
		t.Fatalf("offer address %s: %s: %v", address, out, err)
	}
}

// waitApart waits until a cluster is whole again, and fails the test if ever a member
// of it or of the other cluster lists one of the other's. It reports whether the
// first had a pod with an address on a Kubernetes node.
func waitApart(t *testing.T, one *harness.Space, host, address string, other *harness.Space) (taken bool) {
	t.Helper()
	spaces := []*harness.Space{one, other}
	one.Eventually("what was lost is replaced, and nobody lists a stranger", harness.ActiveWithin, func() error {
		// The node remembers for half a minute which pod had an address before.
		if out, err := clusterctl.NodeExec(t.Context(), host, "ip", "neigh", "flush", "dev", "cni0"); err != nil {
			return fmt.Errorf("forget who had which address: %s: %w", out, err)
		}
		taken = taken || slices.ContainsFunc(one.Pods("c"), func(p corev1.Pod) bool { return p.Status.PodIP == address })
		home, seen := map[string]*harness.Space{}, map[*harness.Space][]harness.Server{}
		for _, s := range spaces {
			for _, n := range s.Nodes("c") {
				if n.Spec.Lifecycle == v1alpha1.LifecycleActive {
					home[n.Status.NodeID] = s
				}
			}
			var err error
			if seen[s], err = s.Servers("c"); err != nil {
				return err
			}
		}
		for s, servers := range seen {
			for _, server := range servers {
				for _, m := range server.Members {
					other, known := home[m.ID]
					if home[server.ID] == s && known && other != s {
						t.Errorf("pod %s in %s lists %s, which is in %s", server.Pod.Name, s.Name, m.ID, other.Name)
					}
				}
			}
		}
		return harness.Settled(one.Get("c"))
	})
	return taken
}
