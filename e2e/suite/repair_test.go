//go:build e2e

package suite

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// pick returns a server of a role in a shard.
func pick(t *testing.T, servers []harness.Server, role topology.Role, shard int32) harness.Server {
	t.Helper()
	for _, s := range servers {
		if s.Self().Role == role && s.Shard() == shard {
			return s
		}
	}
	t.Fatalf("shard %d has no %s", shard, role)
	return harness.Server{}
}

// waitTrouble waits until the manager has said that something is wrong: F-12 gives
// it 15 s.
func waitTrouble(s *harness.Space, history *harness.History, pod string) {
	s.Eventually("the loss of "+pod+" shows in the conditions", 15*time.Second, func() error {
		return history.Find(func(c *v1alpha1.ValkeyCluster) error {
			ready, degraded := harness.Condition(c, v1alpha1.ConditionReady), harness.Condition(c, v1alpha1.ConditionDegraded)
			if ready.Status != metav1.ConditionFalse || degraded.Status != metav1.ConditionTrue {
				return fmt.Errorf("Ready is %s: %s; Degraded is %s: %s", ready.Status, ready.Message, degraded.Status, degraded.Message)
			}
			if c.Status.Ready == "6/6" || c.Status.State != v1alpha1.StateActive {
				return fmt.Errorf("%s nodes are ready, state %s", c.Status.Ready, c.Status.State)
			}
			return nil
		})
	})
}

// B-04, F-05, F-06, F-12: a node that is lost, in whatever way, is replaced by one
// that joins its shard as a replica, and no key is lost.
func TestLostNodesAreReplaced(t *testing.T) {
	t.Parallel()
	const keys = 600
	s := harness.Start(t).Space(t, 8)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	s.StartClient("")
	s.WriteKeys("c", keys)

	losses := []struct {
		name string
		role topology.Role
		lose func(harness.Server)
	}{
		{"a replica's pod is deleted", topology.RoleReplica, func(v harness.Server) { deletePod(s, v.Pod) }},
		{"a primary's server is killed", topology.RolePrimary, func(v harness.Server) {
			if err := s.KillServer(t.Context(), v.Pod); err != nil {
				t.Fatal(err)
			}
		}},
		{"a primary's pod is deleted", topology.RolePrimary, func(v harness.Server) { deletePod(s, v.Pod) }},
		{"a replica's ValkeyNode is deleted", topology.RoleReplica, func(v harness.Server) {
			s.Delete(&v1alpha1.ValkeyNode{ObjectMeta: metav1.ObjectMeta{Namespace: s.Name, Name: v.Pod.Name}})
		}},
	}
	for i, loss := range losses {
		t.Run(loss.name, func(t *testing.T) {
			victim := pick(t, s.WaitFormed("c", 3, 1), loss.role, int32(i%3))
			history := s.History()
			begin := time.Now()
			loss.lose(victim)
			waitTrouble(s, history, victim.Pod.Name)
			shown := time.Since(begin)
			s.WaitActive("c")
			servers := s.WaitFormed("c", 3, 1)
			t.Logf("shown after %s, healed after %s", shown.Round(100*time.Millisecond), time.Since(begin).Round(100*time.Millisecond))
			for _, server := range servers {
				if server.ID == victim.ID {
					t.Errorf("the lost member %s is still there", victim.Pod.Name)
				}
			}
			if n := len(s.Nodes("c")); n != 6 {
				t.Errorf("there are %d ValkeyNodes", n)
			}
			s.WantKeys("c", keys)
		})
	}
}
