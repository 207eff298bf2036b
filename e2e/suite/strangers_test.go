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

// clusters whose pods get each other's old addresses never mix. While a dead
// server is in their table the others try its address, and draw in whoever has it
// now; but a pod that was drawn in joins nobody else, so that no member of one
// cluster ever lists one of the other. Nothing else runs meanwhile, so that nobody
// else takes the addresses.
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
	a, b := e.Space(t, 7), e.Space(t, 7)
	for _, s := range []*harness.Space{a, b} {
		s.Create(s.Cluster("c", 3, 1))
	}
	for _, s := range []*harness.Space{a, b} {
		s.WaitActive("c")
	}
	swapped := 0
	for round := range rounds {
		left, right := replicasOnOneHost(t, a, b, round)
		host := left.Pod.Spec.NodeName
		for s, lost := range map[*harness.Space]corev1.Pod{a: left.Pod, b: right.Pod} {
			s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = true })
			s.WaitCondition("c", v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonPaused)
			deletePod(s, lost, client.GracePeriodSeconds(0))
		}
		for s, address := range map[*harness.Space]string{b: left.Pod.Status.PodIP, a: right.Pod.Status.PodIP} {
			a.Eventually("address "+address+" is free", time.Minute, func() error {
				taken, err := clusterctl.NodeExec(t.Context(), host, "ls", leases)
				if err == nil && slices.Contains(strings.Fields(taken), address) {
					err = fmt.Errorf("taken are %s", taken)
				}
				return err
			})
			offer(t, host, address)
			s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = false })
			if waitApart(t, s, address, a, b) {
				swapped++
			}
		}
		for _, s := range []*harness.Space{a, b} {
			s.WaitActive("c")
			s.WaitFormed("c", 3, 1)
		}
	}
	t.Logf("%d of %d addresses were taken over", swapped, 2*rounds)
	if swapped < rounds {
		t.Errorf("only %d of %d addresses were taken over by the other cluster: this run proves too little", swapped, 2*rounds)
	}
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
	for i := range ofA {
		left = ofA[(i+round)%len(ofA)]
		for _, right = range ofB {
			if host := left.Pod.Spec.NodeName; host != manager.Spec.NodeName && host == right.Pod.Spec.NodeName && left.Self().Role == topology.RoleReplica && right.Self().Role == topology.RoleReplica {
				return left, right
			}
		}
	}
	t.Fatalf("no two replicas are on one Kubernetes node that is not %s", manager.Spec.NodeName)
	return left, right
}

// offer makes an address the next that a pod on a Kubernetes node gets: they are
// given in turn.
func offer(t *testing.T, host, address string) {
	t.Helper()
	before := netip.MustParseAddr(address).Prev()
	// As a pod would, the node remembers which pod had the address.
	script := "printf " + before.String() + " >" + leases + "last_reserved_ip.0; ip neigh flush dev cni0"
	if out, err := clusterctl.NodeExec(t.Context(), host, "sh", "-c", script); err != nil {
		t.Fatalf("offer address %s: %s: %v", address, out, err)
	}
}

// waitApart waits until the unpaused clusters are whole, and fails the test if ever a
// member lists one of the other cluster meanwhile. It reports whether one of the
// clusters had a pod with an address.
func waitApart(t *testing.T, one *harness.Space, address string, spaces ...*harness.Space) (taken bool) {
	t.Helper()
	spaces[0].Eventually("what was lost is replaced, and nobody lists a stranger", harness.ActiveWithin, func() error {
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
		for _, s := range spaces {
			c := s.Get("c")
			if c.Spec.Paused {
				continue
			}
			if err := harness.Settled(c); err != nil {
				return err
			}
		}
		return nil
	})
	return taken
}
