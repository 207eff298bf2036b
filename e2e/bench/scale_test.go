//go:build e2e

package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/writer/report"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// BenchmarkScale takes a cluster with 200,000 keys from 3 shards to 4 and back, and to 6
// and back, three times each, while the writer writes. A move of slots counts from the
// moment in which the new replicas are in sync; the same slots are moved again directly
// by CLUSTER MIGRATESLOTS, and once by valkey-cli --cluster rebalance.
func BenchmarkScale(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	s := begin(b, 6, v1alpha1.ValkeyConfigSpec{}, "--preload", "200000")
	s.witness = s.primaries()[0].Pod
	var rows []string
	for _, n := range []int{4, 6} {
		var moved, direct, out, back []time.Duration
		for round := range 3 {
			before := s.owned()
			product, total := s.scaleOut(n)
			floor, rebalance := s.sameMove(n, before, n == 4 && round == 0)
			moved, direct, out = append(moved, product), append(direct, floor), append(out, total)
			back = append(back, s.scaleIn(n))
			if rebalance > 0 {
				rows = append(rows, fmt.Sprintf("3→%d by valkey-cli --cluster rebalance: slots %.1f s", n, rebalance.Seconds()))
			}
		}
		rows = append(rows, fmt.Sprintf("3→%d: all %s; slots %s, directly %s; %d→3: all %s", n, spread(out), spread(moved), spread(direct), n, spread(back)))
		b.ReportMetric(median(moved).Seconds(), fmt.Sprintf("s/slots-3to%d", n))
		b.ReportMetric(median(direct).Seconds(), fmt.Sprintf("s/direct-3to%d", n))
	}
	r := s.end(false)
	rows = append(rows, gapRows(r)...)
	rows = append(rows, fmt.Sprintf("%d acknowledged keys read back, %d lost", r.Acknowledged, r.Lost))
	printRows("Scaling 3×1 with 200,000 keys, medians of three", rows...)
}

// spread is the median of some times, and all of them.
func spread(times []time.Duration) string {
	return fmt.Sprintf("%.2f s (%s)", median(times).Seconds(), seconds(times))
}

// gapRows sums up the windows of each name, in the order of their first ones.
func gapRows(r *report.Report) (rows []string) {
	var seen []string
	for _, first := range r.Windows {
		if slices.Contains(seen, first.Name) {
			continue
		}
		seen = append(seen, first.Name)
		var gaps []float64
		writes, failed := 0, 0
		for _, w := range r.Windows {
			if w.Name == first.Name {
				gaps, writes, failed = append(gaps, w.Gap()), writes+w.Writes, failed+w.Failed
			}
		}
		rows = append(rows, fmt.Sprintf("%-24s %6d writes, %d failed, longest gap %5.0f ms %.0f", first.Name, writes, failed, median(gaps), gaps))
	}
	return rows
}

// owned returns the slots of each shard.
func (s *subject) owned() map[int32]slots.Set {
	out := map[int32]slots.Set{}
	for shard, server := range s.primaries() {
		out[shard] = server.Self().Slots
	}
	return out
}

func (s *subject) resize(n int) {
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Shards = int32(n) })
}

// scaleOut returns how long the slots took from the moment in which the new
// replicas were in sync, and the whole.
func (s *subject) scaleOut(n int) (moved, total time.Duration) {
	s.b.Helper()
	s.writer.Mark(fmt.Sprintf("new nodes 3→%d", n))
	start := time.Now()
	s.resize(n)
	var synced time.Duration
	s.Eventually("the new replicas are in sync", 2*time.Minute, func() error {
		synced = time.Since(start)
		return s.inSync(n, 1)
	})
	s.writer.Mark(fmt.Sprintf("slots 3→%d", n))
	s.Eventually("the slots are even", 2*time.Minute, func() error {
		total = time.Since(start)
		return s.even(n)
	})
	s.WaitActive("c")
	s.writer.Mark(fmt.Sprintf("after 3→%d", n))
	s.WaitFormed("c", n, 1)
	return max(total-synced, 0), total
}

// scaleIn takes n shards back to 3 and returns how long that took.
func (s *subject) scaleIn(n int) time.Duration {
	s.b.Helper()
	s.writer.Mark(fmt.Sprintf("slots %d→3", n))
	start := time.Now()
	s.resize(3)
	s.Eventually("the slots are even", 2*time.Minute, func() error { return s.even(3) })
	total := time.Since(start)
	s.WaitActive("c")
	s.writer.Mark(fmt.Sprintf("after %d→3", n))
	s.WaitFormed("c", 3, 1)
	return total
}

// inSync checks that every shard of n has its replicas, all in sync by their gates.
func (s *subject) inSync(n, replicas int) error {
	copies := map[string]int{}
	for _, pod := range s.Pods("c") {
		if pod.DeletionTimestamp != nil {
			continue // of a shard that went just before
		}
		// The gate of a new primary opens with its first slot.
		if harness.HasCondition(&pod, v1alpha1.InSyncGate) && pod.Labels[v1alpha1.LabelShardIndex] != "" {
			copies[pod.Labels[v1alpha1.LabelShardIndex]]++
		}
	}
	for shard := range n {
		if got := copies[fmt.Sprint(shard)]; got < replicas {
			return fmt.Errorf("shard %d has %d copies in sync", shard, got)
		}
	}
	return nil
}

// even checks that n primaries own all slots, none of them more than one more than
// another, by the word of one server: to ask them all again and again would take the
// time on few cores that they need to move slots.
func (s *subject) even(n int) error {
	view, err := s.Ask(s.witness)
	if err != nil {
		return err
	}
	sum, least, most, owners := 0, slots.Count, 0, 0
	for _, member := range view.Members {
		if own := member.Slots.Len(); own > 0 {
			sum, least, most, owners = sum+own, min(least, own), max(most, own), owners+1
		}
	}
	if owners != n || sum != slots.Count || most-least > 1 {
		return fmt.Errorf("%d primaries own %d slots, from %d to %d each", owners, sum, least, most)
	}
	return nil
}

// sameMove takes the slots of the new shards back and moves them again, without the
// manager: directly, and by valkey-cli.
func (s *subject) sameMove(n int, before map[int32]slots.Set, byCLI bool) (direct, rebalance time.Duration) {
	s.b.Helper()
	s.pause(true)
	homes, out, back := s.primaries(), s.owned(), map[int32]slots.Set{}
	for shard := range homes {
		back[shard] = before[shard] // nothing, if the shard is new
	}
	s.writer.Mark(fmt.Sprintf("directly %d→3", n))
	s.moveDirectly(back, homes)
	s.writer.Mark(fmt.Sprintf("directly 3→%d", n))
	direct = s.moveDirectly(out, homes)
	if byCLI {
		s.writer.Mark(fmt.Sprintf("directly %d→3 again", n))
		s.moveDirectly(back, homes)
		s.writer.Mark(fmt.Sprintf("valkey-cli 3→%d", n))
		rebalance = s.rebalance(homes[0].Pod)
		s.writer.Mark("after valkey-cli")
	}
	s.Eventually("the servers agree", time.Minute, func() error {
		servers, err := s.Servers("c")
		if err != nil {
			return err
		}
		return harness.Agreed(servers, n, 1)
	})
	s.pause(false)
	s.WaitActive("c")
	return direct, rebalance
}

// rebalance is how long valkey-cli takes to even the slots out.
func (s *subject) rebalance(pod corev1.Pod) time.Duration {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(s.b.Context(), 15*time.Minute)
	defer cancel()
	start := time.Now()
	out, err := s.LongExec(ctx, s.Name, pod.Name, "", "valkey-cli", "--cluster", "rebalance", "127.0.0.1:6379", "--cluster-use-empty-masters", "--cluster-threshold", "1")
	if err != nil {
		s.b.Fatalf("%v: %.300s", err, out)
	}
	return time.Since(start)
}
