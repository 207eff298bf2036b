//go:build e2e

package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/writer/report"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// patient is what a writer has to be while many tests share few cores: none of its
// operations may fail only because a server had to wait for its turn.
const patient = "--patience=20s"

const (
	// longest is ten times the gap in ms that make bench finds in planned operations.
	longest = 2000
	// nodeTimeout is cluster-node-timeout, in ms: what waits for an election waits longer.
	nodeTimeout = 5000
)

// wantSmooth fails the test if a write failed, was lost, or none succeeded for that many
// ms.
func wantSmooth(t *testing.T, w *harness.Writer, r *report.Report, most float64) {
	t.Helper()
	w.WantNothingLost(r, false)
	for _, window := range r.Windows {
		t.Logf("%-12s %6.0f ms, %6d writes, longest gap %.0f ms", window.Name, window.Ms, window.Writes, window.GapMs)
		if gap := window.Gap(); gap >= most {
			t.Errorf("no write succeeded for %.0f ms in %q", gap, window.Name)
		}
	}
}

// S-05, S-06: shards come and go while an application writes, and it doesn't notice.
func TestShardsComeAndGoUnderLoad(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 9)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	w := s.StartWriter("c", patient, "--ranges", harness.Ranges(4), "--preload", "50000", "--every", "4ms")
	for _, shards := range []int32{4, 3} {
		w.Mark(fmt.Sprintf("to %d", shards))
		resize(s, shape{shards, 1})
		s.WaitActive("c")
		checkEven(t, s.WaitFormed("c", int(shards), 1), int(shards))
	}
	wantSmooth(t, w, w.Stop(), longest)
}

// checkEven checks that no shard has more than one slot more than another.
func checkEven(t *testing.T, servers []harness.Server, shards int) {
	t.Helper()
	for _, server := range servers {
		self := server.Self()
		if n := self.Slots.Len(); self.Role == topology.RolePrimary && (n < slots.Count/shards || n > slots.Count/shards+1) {
			t.Errorf("pod %s owns %d slots of %d in %d shards", server.Pod.Name, n, slots.Count, shards)
		}
	}
}

// Every node moves to another image while an application writes, and no write fails.
func TestAnImageRollsUnderLoad(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 8)
	if !s.Local {
		s.CannotCheck(t, "a roll to another image")
		return
	}
	rebuilt, err := clusterctl.ImageFor(t.Context(), clusterctl.RoleRebuild)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Cluster("c", 3, 1)
	ownConfig(s, c)
	s.Create(c)
	s.WaitActive("c")
	other := image(s, s.Name+"-rebuilt", rebuilt.Version)
	at := strings.LastIndex(rebuilt.Ref, ":")
	other.Spec.Repository, other.Spec.Tag = rebuilt.Ref[:at], rebuilt.Ref[at+1:]
	s.Publish(other)
	w := s.StartWriter("c", patient, "--ranges", harness.Ranges(3), "--every", "4ms")
	before := podUIDs(s)
	w.Mark("roll")
	change(s, func(spec *v1alpha1.ValkeyConfigSpec) { spec.ImageRef = other.Name })
	waitRolled(s, before)
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1)
	for _, p := range s.Pods("c") {
		if got := p.Spec.Containers[0].Image; got != rebuilt.Ref {
			t.Errorf("pod %s runs %s", p.Name, got)
		}
	}
	wantSmooth(t, w, w.Stop(), longest)
}

// A primary is handed over when its pod is deleted, drained or asked to by the
// plugin: no write fails and none is lost. It runs alone, for a manager that acts
// later than a second after a deletion leaves the primary to the server, which holds
// writes up for as long.
func TestAPrimaryIsHandedOverUnderLoad(t *testing.T) {
	s := harness.Start(t).Space(t, 8)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	w := s.StartWriter("c", patient, "--ranges", harness.Ranges(3), "--every", "4ms")
	for shard, how := range map[int32]func(harness.Server){
		0: func(p harness.Server) { deletePod(s, p.Pod) },
		1: func(p harness.Server) { evict(t, s, p.Pod) },
		2: func(harness.Server) {
			if r := s.Valkey("failover", "c", "--shard", "2"); r.Code != 0 {
				t.Error(r)
			}
		},
	} {
		primary := pick(t, s.WaitFormed("c", 3, 1), topology.RolePrimary, shard)
		w.Mark(fmt.Sprintf("shard %d", shard))
		how(primary)
		s.Eventually("another node is the primary", time.Minute, func() error {
			for _, now := range s.Get("c").Status.Shards {
				if now.Index == shard && now.Primary != "" && now.Primary != primary.Pod.Name {
					return nil
				}
			}
			return fmt.Errorf("pod %s still is", primary.Pod.Name)
		})
		s.WaitActive("c")
		s.WaitFormed("c", 3, 1)
	}
	wantSmooth(t, w, w.Stop(), longest)
}

// The writer notices what is lost: else its word of other tests would be worth
// nothing.
func TestTheWriterReportsALoss(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 8)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	w := s.StartWriter("c", patient, "--ranges", harness.Ranges(3), "--every", "10ms", "--preload", "3000")
	for _, server := range s.WaitFormed("c", 3, 1) {
		if server.Shard() == 1 {
			if err := s.KillServer(t.Context(), server.Pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.WaitCondition("c", v1alpha1.ConditionDataLoss, "True", v1alpha1.ReasonDataLoss, "shard 1")
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1)
	r := w.Stop()
	if failed, _ := r.Failed(); r.Lost < 900 || failed == 0 {
		t.Errorf("the writer found %d keys lost and %d operations failed, want a third of more than 3000 and some", r.Lost, failed)
	}
}

// evict asks for the eviction of a pod, as a drain does, until its budget allows it.
func evict(t *testing.T, s *harness.Space, pod corev1.Pod) {
	t.Helper()
	s.Eventually("pod "+pod.Name+" is evicted", time.Minute, func() error {
		return s.Clientset.CoreV1().Pods(s.Name).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: s.Name, Name: pod.Name}})
	})
}
