// Package metrics tells Prometheus what the manager does and how the clusters are.
//
// How they are is read from the custom resources in the manager's cache each time
// somebody asks, so a series can't outlive its cluster and no controller has to keep
// numbers up to date. Only what leaves no trace there is counted as it happens:
// passes and actions.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Results of passes and actions.
const (
	Succeeded = "success"
	Failed    = "failure"
)

// Metrics is a collector, and where the controllers count. A nil one counts nothing:
// metrics are off by default.
type Metrics struct {
	reader client.Reader

	passes   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	actions  *prometheus.CounterVec
}

var cluster = []string{"namespace", "cluster"}

func with(labels ...string) []string { return append(append([]string{}, cluster...), labels...) }

// New returns metrics that read clusters and nodes from a cache.
func New(reader client.Reader) *Metrics {
	return &Metrics{
		reader: reader,
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "valkey_reconcile_total", Help: "Passes over a cluster, by result.",
		}, with("result")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "valkey_reconcile_duration_seconds", Help: "How long a pass over a cluster took.",
			Buckets: []float64{0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30},
		}, cluster),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "valkey_actions_total", Help: "Steps that the manager took on a cluster, by kind and result. Kind MoveSlots counts migrations.",
		}, with("kind", "result")),
	}
}

func result(err error) string {
	if err != nil {
		return Failed
	}
	return Succeeded
}

// Pass counts a pass over a cluster that still exists.
func (m *Metrics) Pass(key types.NamespacedName, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.passes.WithLabelValues(key.Namespace, key.Name, result(err)).Inc()
	m.duration.WithLabelValues(key.Namespace, key.Name).Observe(took.Seconds())
}

// Action counts a step.
func (m *Metrics) Action(key types.NamespacedName, kind string, err error) {
	if m == nil {
		return
	}
	m.actions.WithLabelValues(key.Namespace, key.Name, kind, result(err)).Inc()
}

// Forget removes what was counted for a cluster that is gone.
func (m *Metrics) Forget(key types.NamespacedName) {
	if m == nil {
		return
	}
	labels := prometheus.Labels{"namespace": key.Namespace, "cluster": key.Name}
	m.passes.DeletePartialMatch(labels)
	m.duration.DeletePartialMatch(labels)
	m.actions.DeletePartialMatch(labels)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.passes.Describe(ch)
	m.duration.Describe(ch)
	m.actions.Describe(ch)
	for _, d := range gauges {
		ch <- d.desc
	}
}

// collectWithin bounds reading the cache, which is memory, but may not be filled yet.
const collectWithin = 5 * time.Second

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.passes.Collect(ch)
	m.duration.Collect(ch)
	m.actions.Collect(ch)
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()
	var clusters v1alpha1.ValkeyClusterList
	var nodes v1alpha1.ValkeyNodeList
	for _, list := range []client.ObjectList{&clusters, &nodes} {
		if err := m.reader.List(ctx, list); err != nil {
			ch <- prometheus.NewInvalidMetric(gaugeClusters.desc, err)
			return
		}
	}
	of := map[types.NamespacedName][]v1alpha1.ValkeyNode{}
	for _, n := range nodes.Items {
		key := types.NamespacedName{Namespace: n.Namespace, Name: n.Spec.ClusterName}
		of[key] = append(of[key], n)
	}
	states := map[string]float64{}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		states[string(c.Status.State)]++
		for _, s := range samples(c, of[client.ObjectKeyFromObject(c)]) {
			ch <- prometheus.MustNewConstMetric(s.gauge.desc, prometheus.GaugeValue, s.value, append([]string{c.Namespace, c.Name}, s.labels...)...)
		}
	}
	for _, state := range []v1alpha1.ClusterState{v1alpha1.StateCreating, v1alpha1.StateActive, v1alpha1.StateUpdating, v1alpha1.StateInvalid} {
		ch <- prometheus.MustNewConstMetric(gaugeClusters.desc, prometheus.GaugeValue, states[string(state)], string(state))
	}
}
