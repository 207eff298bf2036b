//go:build e2e

package suite

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// agreeWithin is how long servers may take to agree on where everybody is.
const agreeWithin = 15 * time.Second

// accepted are the lines in the log of a replica that was told to take over, by the
// manager or by a primary that shuts down; won those of a replica that did. When the
// manager's failover has expired, the server's own on SIGTERM may follow it.
var (
	accepted = regexp.MustCompile(`failover (user|primary) request accepted|Taking over the primary`)
	won      = regexp.MustCompile(`Failover election won`)
	expired  = regexp.MustCompile(`Manual failover timed out`)
)

// F-05, F-07, R-03: whichever pod is primary is deleted, again and again. Each time
// one replica is told once to take over, nobody's write fails or waits for an
// election, a new node joins the shard as a replica, and soon all servers agree on
// where everybody is.
func TestAPrimaryIsDeletedAgainAndAgain(t *testing.T) {
	t.Parallel()
	rounds := 3
	if harness.Full() {
		rounds = 20
	}
	s := harness.Start(t).Space(t, 8)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	w := s.StartWriter("c", patient, "--ranges", harness.Ranges(3), "--every", "4ms")
	promoted := map[string]int{}
	for round := range rounds {
		servers := s.WaitFormed("c", 3, 1)
		victim := pick(t, servers, topology.RolePrimary, int32(round%3))
		promoted[pick(t, servers, topology.RoleReplica, int32(round%3)).Pod.Name]++
		w.Mark(fmt.Sprintf("deletion %d", round+1))
		deletePod(s, victim.Pod)
		waitReplaced(s, victim.Pod.Name)
		s.Eventually("the servers agree", agreeWithin, func() error {
			servers, err := s.Servers("c")
			if err != nil {
				return err
			}
			return harness.Formed(servers, 3, 1)
		})
		s.WaitActive("c")
		for _, server := range s.WaitFormed("c", 3, 1) {
			name := server.Pod.Name
			log := s.Kubectl("logs", name)
			for what, line := range map[string]*regexp.Regexp{"was told to take over": accepted, "took over": won} {
				n := len(line.FindAllString(log.Stdout, -1))
				if line == accepted && n > promoted[name] {
					n -= len(expired.FindAllString(log.Stdout, -1))
				}
				if n != promoted[name] {
					t.Errorf("after deletion %d: pod %s %s %d times, want %d: %s", round+1, name, what, n, promoted[name], log)
				}
			}
		}
	}
	wantSmooth(t, w, w.Stop(), nodeTimeout)
}

// waitReplaced waits until a node is gone and as many as before are Active.
func waitReplaced(s *harness.Space, gone string) {
	s.Eventually("node "+gone+" is replaced", harness.ActiveWithin, func() error {
		c := s.Get("c")
		active := 0
		for _, n := range s.Nodes("c") {
			if n.Name == gone {
				return fmt.Errorf("it is still there: %s", c.Status.Message)
			}
			if n.Spec.Lifecycle == v1alpha1.LifecycleActive {
				active++
			}
		}
		if want := (shape{c.Spec.Shards, c.Spec.ReplicasPerShard}).nodes(); active != want {
			return fmt.Errorf("%d nodes are Active, want %d: %s", active, want, c.Status.Message)
		}
		return nil
	})
}
