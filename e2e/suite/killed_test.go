//go:build e2e

package suite

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// The manager is killed ten times while clusters are made, each time at a random
// moment after it has begun to lead: twice within each of five bootstraps. Nothing
// else runs at that time, so that it is these bootstraps that are interrupted.
func TestBootstrapSurvivesAManagerThatIsKilled(t *testing.T) {
	e := harness.Start(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rounds, kills := 5, 2
	if harness.Full() {
		rounds, kills = 10, 5
	}
	// About as long as a bootstrap takes from the moment the manager leads.
	const span = 6 * time.Second
	killed := 0
	for round := range rounds {
		t.Run(fmt.Sprintf("bootstrap %d", round+1), func(t *testing.T) {
			s := e.Space(t, 6)
			births := s.Births(&v1alpha1.ValkeyNodeList{})
			pods := s.Births(&corev1.PodList{})
			s.Create(s.Cluster("c", 3, 1))
			for range kills {
				leader, err := e.WaitForManager(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				// The moments are spread over what is left of the bootstrap: a span of its
				// own for each kill.
				wait := time.Duration(random.Int64N(int64(span / time.Duration(kills))))
				harness.Pause(t.Context(), wait)
				c := s.Get("c")
				t.Logf("killed after %s of leading, the cluster was %q: %s", wait.Round(time.Millisecond), c.Status.State, c.Status.Message)
				if err := e.KillManager(t.Context(), leader); err != nil {
					t.Fatal(err)
				}
				killed++
				if _, err := e.WaitForManager(t.Context(), leader.Name); err != nil {
					t.Fatal(err)
				}
			}
			s.WaitActive("c")
			s.WaitFormed("c", 3, 1)
			if err := births.Want(6); err != nil {
				t.Errorf("ValkeyNodes made: %v", err)
			}
			if err := pods.Want(6); err != nil {
				t.Errorf("pods made: %v", err)
			}
		})
	}
	if killed != rounds*kills {
		t.Errorf("the manager was killed %d times, want %d", killed, rounds*kills)
	}
}
