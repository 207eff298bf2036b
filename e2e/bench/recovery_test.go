//go:build e2e

package bench

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

const (
	// shutdowns are how often a server hands over by itself on SIGTERM. It first waits for
	// its replica's next word, which comes once a second: how long that takes is chance, and
	// only many rounds say something.
	shutdowns = 21
	// deletions are how often the manager hands over.
	deletions = 7
)

// loss is a way to take a primary away.
type loss struct {
	name   string
	rounds int
	do     func()
}

// BenchmarkRecovery takes primaries away in every way while the writer writes, and
// holds the gaps against what the servers do alone in the same run: their own
// election after a kill, their own handover on SIGTERM. These two and the deletion
// that only the server answers take turns.
func BenchmarkRecovery(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	s := begin(b, 3, v1alpha1.ValkeyConfigSpec{}, "--preload", "20000")
	losses := []loss{
		{"kill -9", 1, func() { s.kill(s.primaries()[0].Pod) }},
		{"kill -9, bare election", 1, func() { s.alone(func() { s.kill(s.primaries()[0].Pod) }) }},
		{"pod deleted", deletions, func() { s.delete(s.primaries()[0].Pod) }},
		{"node stop", 1, func() { s.stopNode() }},
		{"pod deleted, manager stopped", shutdowns, func() { s.unmanaged(func() { s.delete(s.primaries()[0].Pod) }) }},
		{"bare SIGTERM", shutdowns, func() { s.unmanaged(func() { s.terminate(s.primaries()[0].Pod) }) }},
	}
	for round := range shutdowns {
		for _, l := range losses {
			if round >= l.rounds {
				continue
			}
			s.writer.Mark(l.window(round))
			l.do()
			s.healed()
			s.writer.Mark("after " + l.window(round))
		}
	}
	r := s.end(true)
	var rows []string
	for _, l := range losses {
		var gaps []float64
		failed, writes := 0, 0
		for round := range l.rounds {
			w := s.window(r, l.window(round))
			gaps = append(gaps, w.Gap())
			failed, writes = failed+w.Failed, writes+w.Writes+w.Failed
		}
		rows = append(rows, fmt.Sprintf("%-30s longest gap %6.0f ms (median of %d, mean %.0f: %.0f); %d of %d writes failed",
			l.name, median(gaps), len(gaps), mean(gaps), slices.Sorted(slices.Values(gaps)), failed, writes))
	}
	rows = append(rows, fmt.Sprintf("%d acknowledged keys read back, %d lost", r.Acknowledged, r.Lost))
	printRows("A primary is taken away from 3×1 under load", rows...)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// window is the name of what the writer saw in a round.
func (l loss) window(round int) string { return fmt.Sprintf("%s, %d", l.name, round+1) }

// away is a primary on another Kubernetes node than the writer, and than the manager
// when the benchmark began.
func (s *subject) away() harness.Server {
	s.b.Helper()
	find := func() (harness.Server, bool) {
		for _, primary := range s.primaries() {
			if primary.Pod.Spec.NodeName != s.quiet {
				return primary, true
			}
		}
		return harness.Server{}, false
	}
	if primary, ok := find(); ok {
		return primary
	}
	// Its replicas are elsewhere.
	if r := s.Valkey("failover", "c", "--shard", "0"); r.Code != 0 {
		s.b.Fatal(r)
	}
	var primary harness.Server
	s.Eventually("a primary is on another node", time.Minute, func() error {
		var ok bool
		if primary, ok = find(); !ok {
			return fmt.Errorf("every primary is on node %s", s.quiet)
		}
		return nil
	})
	return primary
}

func (s *subject) kill(pod corev1.Pod) {
	s.b.Helper()
	if err := s.KillServer(s.b.Context(), pod); err != nil {
		s.b.Fatal(err)
	}
}

func (s *subject) delete(pod corev1.Pod) {
	s.b.Helper()
	if err := s.Client.Delete(s.b.Context(), &pod); err != nil {
		s.b.Fatalf("delete pod %s: %v", pod.Name, err)
	}
	s.succeeded(pod)
}

func (s *subject) terminate(pod corev1.Pod) {
	s.b.Helper()
	if err := s.SignalServer(pod, syscall.SIGTERM); err != nil {
		s.b.Fatal(err)
	}
	s.succeeded(pod)
}

// succeeded waits until another server owns the slots of a pod's.
func (s *subject) succeeded(pod corev1.Pod) {
	s.b.Helper()
	shard := pod.Labels[v1alpha1.LabelShardIndex]
	s.Eventually("the primary is succeeded", 2*time.Minute, func() error {
		for _, now := range s.primaries() {
			if now.Pod.Labels[v1alpha1.LabelShardIndex] == shard && now.Pod.Name != pod.Name {
				return nil
			}
		}
		return fmt.Errorf("pod %s is not succeeded", pod.Name)
	})
}

// alone does something to a cluster that the manager leaves alone until the servers
// have elected a successor.
func (s *subject) alone(do func()) {
	s.b.Helper()
	s.pause(true)
	before := s.primaries()
	do()
	s.Eventually("the servers have elected", 2*time.Minute, func() error {
		now := s.primaries()
		if len(now) != len(before) {
			return fmt.Errorf("%d primaries", len(now))
		}
		for shard, server := range now {
			if server.ID != before[shard].ID {
				return nil
			}
		}
		return fmt.Errorf("the primaries are as before")
	})
	s.pause(false)
}

// unmanaged does something while no manager runs.
func (s *subject) unmanaged(do func()) {
	s.b.Helper()
	if err := s.ScaleManager(s.b.Context(), 0); err != nil {
		s.b.Fatal(err)
	}
	do()
	if err := s.ScaleManager(s.b.Context(), 1); err != nil {
		s.b.Fatal(err)
	}
}

// stopNode fails a Kubernetes node with a primary at once, and starts it again when
// the cluster has recovered.
func (s *subject) stopNode() {
	s.b.Helper()
	victim := s.away()
	host := victim.Pod.Spec.NodeName
	if err := clusterctl.NodeStop(s.b.Context(), host); err != nil {
		s.b.Fatal(err)
	}
	s.Eventually("other nodes serve every slot", 2*time.Minute, func() error {
		c := s.Get("c")
		for _, shard := range c.Status.Shards {
			at := slices.IndexFunc(s.Pods("c"), func(p corev1.Pod) bool { return p.Name == shard.Primary })
			if at < 0 || s.Pods("c")[at].Spec.NodeName == host {
				return fmt.Errorf("shard %d is served by %q", shard.Index, shard.Primary)
			}
		}
		return nil
	})
	if err := clusterctl.NodeStart(s.b.Context(), host); err != nil {
		s.b.Fatal(err)
	}
}

// healed waits until the cluster is whole again without a hand.
func (s *subject) healed() {
	s.b.Helper()
	s.Eventually("the cluster is whole", 5*time.Minute, func() error {
		if err := harness.Settled(s.Get("c")); err != nil {
			return err
		}
		servers, err := s.Servers("c")
		if err != nil {
			return err
		}
		return harness.Formed(servers, 3, 1)
	})
}
