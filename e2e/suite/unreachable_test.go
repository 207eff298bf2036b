//go:build e2e

package suite

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// currentWithin is how old at most the status may be while a server is out of reach.
const currentWithin = 10 * time.Second

// F-08: a server that the manager can't reach, while the others can, is named, and
// what becomes of the others shows at once. Nothing is replaced for it.
func TestOneServerOutOfReachHidesNoOther(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 6)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	before := podUIDs(s)
	for _, role := range []topology.Role{topology.RoleReplica, topology.RolePrimary} {
		t.Run(string(role), func(t *testing.T) {
			servers := s.WaitFormed("c", 3, 1)
			victim, heir := pick(t, servers, role, 1), pick(t, servers, topology.RoleReplica, 2)
			reopen := cutOff(t, s, victim.Pod)
			s.Eventually("the conditions name the server", time.Minute, func() error {
				degraded := harness.Condition(s.Get("c"), v1alpha1.ConditionDegraded)
				if degraded.Status != metav1.ConditionTrue {
					return fmt.Errorf("Degraded is %s: %s", degraded.Status, degraded.Message)
				}
				return harness.Contains(degraded.Message+harness.Condition(s.Get("c"), v1alpha1.ConditionReady).Message, victim.Pod.Name)
			})
			begin := time.Now()
			if out, err := s.Exec(t.Context(), s.Name, heir.Pod.Name, "", "valkey-cli", "CLUSTER", "FAILOVER"); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			s.Eventually("the status shows another primary of another shard", currentWithin, func() error {
				for _, shard := range s.Get("c").Status.Shards {
					if shard.Index == 2 && shard.Primary != heir.Pod.Name {
						return fmt.Errorf("it shows %q", shard.Primary)
					}
				}
				for _, n := range s.Nodes("c") {
					if n.Name == heir.Pod.Name && n.Status.Role != string(topology.RolePrimary) {
						return fmt.Errorf("node %s is shown as %s", n.Name, n.Status.Role)
					}
				}
				return nil
			})
			t.Logf("shown after %s", time.Since(begin).Round(100*time.Millisecond))
			reopen()
			s.WaitActive("c")
		})
	}
	s.WaitFormed("c", 3, 1)
	after := podUIDs(s)
	for pod, uid := range before {
		if after[pod] != uid {
			t.Errorf("pod %s was replaced although its server was well", pod)
		}
	}
}

// cutOff lets nobody connect to the client port of a pod any more, and ends the
// manager's connections. The bus and what replicas have open stay.
func cutOff(t *testing.T, s *harness.Space, pod corev1.Pod) (reopen func()) {
	t.Helper()
	const mark = "kubectl-valkey-e2e/cut-off"
	if r := s.Kubectl("label", "pod", pod.Name, mark+"=here"); r.Code != 0 {
		t.Fatal(r)
	}
	policy := closed(s, "cut-off", map[string]string{mark: "here"}, ports(nil, 16379))
	s.Create(policy)
	if out, err := s.Exec(t.Context(), s.Name, pod.Name, "", "valkey-cli", "CLIENT", "KILL", "USER", "_momento_operator"); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return func() {
		s.Delete(policy)
		if r := s.Kubectl("label", "pod", pod.Name, mark+"-"); r.Code != 0 {
			t.Fatal(r)
		}
	}
}

// every pod is lost at once. A new cluster comes up in their place without a
// hand, in which nobody knows a server of before, and everybody is told of the loss.
func TestEveryPodIsLostAtOnce(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 12)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	before := map[string]bool{}
	for _, server := range s.WaitFormed("c", 3, 1) {
		before[server.ID] = true
	}
	begin := time.Now()
	if err := s.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(s.Name), client.MatchingLabels{v1alpha1.LabelInstance: "c"}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatalf("delete every pod: %v", err)
	}
	servers := waitWhole(s, "there is a whole cluster of new servers", 180*time.Second)
	t.Logf("a whole cluster after %s", time.Since(begin).Round(100*time.Millisecond))
	for _, server := range servers {
		if before[server.ID] {
			t.Errorf("pod %s has the ID of a server that was lost", server.Pod.Name)
		}
	}
	s.WaitCondition("c", v1alpha1.ConditionDataLoss, metav1.ConditionTrue, v1alpha1.ReasonDataLoss, "shard 0", "shard 1", "shard 2")
	if e := s.WaitEvents("c", v1alpha1.ReasonDataLoss, 1)[0]; e.Type != corev1.EventTypeWarning {
		t.Errorf("the loss is told by a %s event: %s", e.Type, e.Message)
	}
}

// waitWhole waits until cluster c is settled and its servers are 3 shards with a
// replica each, all in one limit, and returns them.
func waitWhole(s *harness.Space, what string, within time.Duration) []harness.Server {
	var servers []harness.Server
	s.Eventually(what, within, func() error {
		if err := harness.Settled(s.Get("c")); err != nil {
			return err
		}
		var err error
		if servers, err = s.Servers("c"); err != nil {
			return err
		}
		return harness.Formed(servers, 3, 1)
	})
	return servers
}
