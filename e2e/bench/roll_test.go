//go:build e2e

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// BenchmarkRoll moves a cluster of 3 shards with a replica each to another image
// while the writer writes. The gap in its writes is held against those of bare
// CLUSTER FAILOVERs in the same run.
func BenchmarkRoll(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	s := begin(b, 3, v1alpha1.ValkeyConfigSpec{}, "--preload", "20000")
	s.pause(true)
	s.writer.Mark("bare failover")
	s.failoverEach()
	s.writer.Mark("settle")
	s.pause(false)
	s.WaitActive("c")
	took := s.roll()
	r := s.end(false)
	floor, roll := s.window(r, "bare failover"), s.window(r, "roll")
	b.ReportMetric(took.Seconds(), "s/roll")
	b.ReportMetric(roll.Gap(), "ms/gap-roll")
	b.ReportMetric(floor.Gap(), "ms/gap-failover")
	b.ReportMetric(roll.Gap()/floor.Gap(), "roll/failover")
	printRows("Image roll of 3×1 under load",
		fmt.Sprintf("six nodes replaced in %.1f s, %d operations failed, %d of %d acknowledged keys lost", took.Seconds(), roll.Failed, r.Lost, r.Acknowledged),
		fmt.Sprintf("longest gap by shard: roll %.0f ms, bare CLUSTER FAILOVER %.0f ms", roll.GapMs, floor.GapMs),
		fmt.Sprintf("slowest write: roll %.0f ms, bare CLUSTER FAILOVER %.0f ms", roll.WorstMs, floor.WorstMs))
}

// failoverEach hands every shard over and back by CLUSTER FAILOVER, one after the
// other.
func (s *subject) failoverEach() {
	s.b.Helper()
	for range 2 {
		for shard, primary := range s.primaries() {
			if out := s.cli(s.replica(primary).Pod, "CLUSTER", "FAILOVER"); !strings.HasPrefix(out, "OK") {
				s.b.Fatalf("CLUSTER FAILOVER: %s", out)
			}
			s.Eventually("the replica is primary", time.Minute, func() error {
				if now := s.primaries()[shard]; now.ID == primary.ID || now.ID == "" {
					return fmt.Errorf("shard %d is served by %q", shard, now.Pod.Name)
				}
				return nil
			})
			s.Eventually("the servers agree", time.Minute, func() error {
				servers, err := s.Servers("c")
				if err != nil {
					return err
				}
				return harness.Agreed(servers, 3, 1)
			})
		}
	}
}

// roll moves the cluster to another image and returns how long it took.
func (s *subject) roll() time.Duration {
	s.b.Helper()
	ref := rebuilt(s.b)
	at := strings.LastIndex(ref, ":")
	image := &v1alpha1.ValkeyImage{Spec: v1alpha1.ValkeyImageSpec{Repository: ref[:at], Tag: ref[at+1:], Version: s.ValkeyImage.Version}}
	image.Name = s.Name
	s.Publish(image)
	before := map[string]bool{}
	for _, p := range s.Pods("c") {
		before[p.Name] = true
	}
	s.writer.Mark("roll")
	start := time.Now()
	s.editConfig(func(spec *v1alpha1.ValkeyConfigSpec) { spec.ImageRef = s.Name })
	var took time.Duration
	s.Eventually("every pod is replaced", 5*time.Minute, func() error {
		took = time.Since(start)
		pods := s.Pods("c")
		for _, p := range pods {
			if before[p.Name] {
				return fmt.Errorf("pod %s is left: %s", p.Name, s.Get("c").Status.Message)
			}
		}
		if len(pods) != len(before) {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		return nil
	})
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1)
	s.writer.Mark("after the roll")
	return took
}
