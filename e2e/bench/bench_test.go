//go:build e2e

// Package bench measures how long a cluster takes from its creation until it is
// Active, beside what servers and kubelet need in any case. `make bench` runs it.
package bench

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
)

func TestMain(m *testing.M) { harness.Main(m, false) }

const (
	shards   = 3
	replicas = 1
	rounds   = 5
)

// BenchmarkCreateToActive3x1 alternates between the product and the floor, on the
// same Kubernetes nodes and with the same valkey.conf and users.
//
//   - manager: from the start of `kubectl valkey create --wait` to its return;
//   - floor: from the creation of the same six pods to the moment from which every
//     server agrees, `valkey-cli --cluster create` being run as soon as all answer.
//
// Its config has no CPU limit: one would slow down valkey-cli, which runs in one of
// the pods, and so the floor. It fails on errors, never on times.
func BenchmarkCreateToActive3x1(b *testing.B) {
	e := harness.Start(b)
	warmUp(b, e)
	var product, active, floor []time.Duration
	for b.Loop() {
		for range rounds {
			p, a, made := measureProduct(b, e)
			product, active = append(product, p), append(active, a)
			floor = append(floor, measureFloor(b, e, made))
		}
	}
	b.ReportMetric(0, "ns/op") // the rounds are what counts
	b.ReportMetric(median(product).Seconds(), "s/manager")
	b.ReportMetric(median(floor).Seconds(), "s/floor")
	b.ReportMetric(median(product).Seconds()/median(floor).Seconds(), "manager/floor")
	var table strings.Builder
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{
		{"manager: create --wait returns", product},
		{"manager: a watch sees Active", active},
		{"floor: every server agrees", floor},
	} {
		fmt.Fprintf(&table, "%-32s median %6.2f s  min %6.2f s  max %6.2f s  (%s)\n", row.name, median(row.times).Seconds(),
			slices.Min(row.times).Seconds(), slices.Max(row.times).Seconds(), seconds(row.times))
	}
	// The log of a benchmark is cut off, and this is what it is run for.
	fmt.Fprintf(os.Stdout, "\n%d×%d, %d rounds\n%s\n", shards, replicas, rounds, table.String())
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func seconds(times []time.Duration) string {
	var out []string
	for _, t := range times {
		out = append(out, fmt.Sprintf("%.2f", t.Seconds()))
	}
	return strings.Join(out, " ")
}
