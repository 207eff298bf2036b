//go:build e2e

package bench

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// BenchmarkVerifyTLS times verify-tls on clusters that grow, and reckons from the
// growth how long it takes on a cluster that is too big for this machine.
func BenchmarkVerifyTLS(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	const big = 60
	s := &subject{b: b, Space: harness.Start(b).Space(b, 0)}
	ca := harness.NewAuthority(b)
	var nodes, took []float64
	var rows []string
	for _, shape := range [][2]int32{{3, 0}, {3, 1}, {6, 1}, {9, 1}} {
		name := fmt.Sprintf("c%d", shape[0]*(1+shape[1]))
		s.Create(s.TLSSecret(name, ca, s.Names(name)...))
		c := s.Cluster(name, shape[0], shape[1])
		c.Spec.TLS = &v1alpha1.TLS{SecretRef: name}
		s.Create(c)
		s.WaitActive(name)
		s.WaitCondition(name, v1alpha1.ConditionTLSReady, metav1.ConditionTrue, v1alpha1.ReasonTLSServed)
		var times []time.Duration
		for range rounds {
			start := time.Now()
			if r := s.Valkey("verify-tls", name); r.Code != 0 {
				b.Fatal(r)
			}
			times = append(times, time.Since(start))
		}
		count := len(s.Pods(name))
		nodes, took = append(nodes, float64(count)), append(took, median(times).Seconds())
		rows = append(rows, fmt.Sprintf("%2d nodes  median %5.2f s (%s)", count, median(times).Seconds(), seconds(times)))
		s.Delete(c)
	}
	base, each := line(nodes, took)
	rows = append(rows, fmt.Sprintf("%2d nodes         %5.2f s, reckoned: %.2f s and %.0f ms a node", big, base+each*big, base, 1000*each))
	b.ReportMetric(base+each*big, "s/60-nodes")
	printRows("verify-tls on TLS clusters, all checks passed", rows...)
}

// line returns the straight line that fits points best, by the least squares.
func line(x, y []float64) (base, slope float64) {
	var meanX, meanY, xy, xx float64
	for i := range x {
		meanX, meanY = meanX+x[i]/float64(len(x)), meanY+y[i]/float64(len(x))
	}
	for i := range x {
		xy += (x[i] - meanX) * (y[i] - meanY)
		xx += (x[i] - meanX) * (x[i] - meanX)
	}
	return meanY - xy/xx*meanX, xy / xx
}
