package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// gauge is one number per cluster and further labels.
type gauge struct {
	name, help string
	desc       *prometheus.Desc
}

// gauges are all, in the order of their definition.
var gauges []*gauge

func define(name, help string, labels []string) *gauge {
	g := &gauge{name: name, help: help, desc: prometheus.NewDesc(name, help, labels, nil)}
	gauges = append(gauges, g)
	return g
}

var (
	gaugeClusters  = define("valkey_clusters", "Clusters by state.", []string{"state"})
	gaugeShards    = define("valkey_cluster_shards", "Shards by health: ready ones have all their nodes in sync.", with("health"))
	gaugeWished    = define("valkey_cluster_wished_shards", "Shards that the spec asks for.", cluster)
	gaugeNodes     = define("valkey_cluster_nodes", "Nodes by role and health.", with("role", "health"))
	gaugeSlots     = define("valkey_cluster_slots", "Hash slots that a primary owns; 16384 when all are served.", cluster)
	gaugeCondition = define("valkey_cluster_condition", "1 for the status that a condition has, 0 for the others.",
		with("type", "status"))
	gaugeExpiry = define("valkey_cluster_certificate_expiry_timestamp_seconds", "When the certificate expires, in seconds since 1970; only with spec.tls.", cluster)
	gaugeTLS    = define("valkey_cluster_tls_nodes", "Nodes that serve the Secret's certificate; only with spec.tls.", cluster)
	gaugeACL    = define("valkey_cluster_acl_nodes", "Nodes by the revision of the users that they have in force; more than one means that a change is on its way.", with("revision"))
	gaugePaused = define("valkey_cluster_paused", "1 while spec.paused is true.", cluster)
)

// sample is a value of a gauge.
type sample struct {
	gauge  *gauge
	value  float64
	labels []string
}

// Health of shards and nodes.
const (
	healthy   = "ready"
	unhealthy = "not-ready"
)

// samples are what is known of one cluster.
func samples(c *v1alpha1.ValkeyCluster, nodes []v1alpha1.ValkeyNode) []sample {
	slots := int32(0)
	for _, shard := range c.Status.Shards {
		slots += shard.SlotCount
	}
	out := []sample{
		{gaugeShards, float64(c.Status.ReadyShards), []string{healthy}},
		{gaugeShards, float64(max(0, c.Status.ShardCount-c.Status.ReadyShards)), []string{unhealthy}},
		{gaugeWished, float64(c.Spec.Shards), nil},
		{gaugeSlots, float64(slots), nil},
		{gaugePaused, truth(c.Spec.Paused), nil},
	}
	out = append(out, nodeSamples(nodes)...)
	for _, condition := range c.Status.Conditions {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			out = append(out, sample{gaugeCondition, truth(condition.Status == status), []string{condition.Type, string(status)}})
		}
	}
	if tls := c.Status.TLS; c.Spec.TLS != nil && tls != nil {
		if tls.NotAfter != nil {
			out = append(out, sample{gaugeExpiry, float64(tls.NotAfter.Unix()), nil})
		}
		out = append(out, sample{gaugeTLS, float64(len(tls.Nodes)), nil})
	}
	return out
}

// nodeSamples counts nodes by role and health, and by the users that they have in
// force: more than one revision means that a change is on its way.
func nodeSamples(nodes []v1alpha1.ValkeyNode) []sample {
	type kind struct{ role, health string }
	counts := map[kind]float64{{"primary", healthy}: 0, {"primary", unhealthy}: 0, {"replica", healthy}: 0, {"replica", unhealthy}: 0}
	revisions := map[string]float64{}
	for _, n := range nodes {
		k := kind{n.Status.Role, unhealthy}
		if k.role == "" {
			k.role = "unknown"
		}
		if n.Status.Ready {
			k.health = healthy
		}
		counts[k]++
		if n.Status.Applied != nil && n.Status.Applied.ACLRevision != "" {
			revisions[n.Status.Applied.ACLRevision]++
		}
	}
	var out []sample
	for k, n := range counts {
		out = append(out, sample{gaugeNodes, n, []string{k.role, k.health}})
	}
	for revision, n := range revisions {
		// The start of a content hash tells revisions apart well enough.
		out = append(out, sample{gaugeACL, n, []string{revision[:min(12, len(revision))]}})
	}
	return out
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
