//go:build e2e

package bench

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// BenchmarkDrain drains one Kubernetes node after the other of a cluster that holds
// 1 GB a shard, with kubectl drain and nothing else, while the writer writes.
func BenchmarkDrain(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	s := begin(b, 3, v1alpha1.ValkeyConfigSpec{
		Resources: memory("2Gi"),
		Valkey:    map[string]v1alpha1.SettingValue{"maxmemory": "1600mb"},
	}, "--preload", "30000", "--size", "100000", "--patience", "20s")
	var hosts corev1.NodeList
	if err := s.Client.List(b.Context(), &hosts); err != nil {
		b.Fatal(err)
	}
	var rows []string
	for _, host := range hosts.Items {
		s.writer.Mark(host.Name)
		start := time.Now()
		// Only this cluster: the manager and the writer are others' business.
		r := s.RunKubectl(b.Context(), "", "drain", host.Name, "--delete-emptydir-data", "--force", "--ignore-daemonsets",
			"--pod-selector", "app.kubernetes.io/instance=c", "--timeout", "10m")
		if r.Code != 0 {
			b.Fatal(r)
		}
		drained := time.Since(start)
		// A cordoned zone would leave a shard without room for its spread.
		if r := s.RunKubectl(b.Context(), "", "uncordon", host.Name); r.Code != 0 {
			b.Fatal(r)
		}
		s.healed()
		rows = append(rows, fmt.Sprintf("%s drained in %.0f s, whole again after %.0f s", host.Name, drained.Seconds(), time.Since(start).Seconds()))
	}
	r := s.end(false)
	for i, host := range hosts.Items {
		w := s.window(r, host.Name)
		rows[i] += fmt.Sprintf(", %d operations failed, longest gap by shard %.0f ms", w.Failed, w.GapMs)
	}
	rows = append(rows, fmt.Sprintf("%d acknowledged keys read back, %d lost", r.Acknowledged, r.Lost))
	printRows("Every node drained, 1 GB a shard", rows...)
}
