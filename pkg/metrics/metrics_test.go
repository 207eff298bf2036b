package metrics

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func reader(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func demo() []client.Object {
	f := plugintest.Active("demo", 2, 1)
	f.Nodes[3].Status.Ready = false
	f.Cluster.Status.ReadyShards = 1
	f.Cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "x"}
	expiry := metav1.NewTime(time.Unix(1800000000, 0))
	f.Cluster.Status.TLS = &v1alpha1.TLSStatus{NotAfter: &expiry, Nodes: []string{"a", "b", "c"}}
	f.Nodes[0].Status.Applied = &v1alpha1.Applied{ACLRevision: "0123456789abcdef"}
	all := []client.Object{f.Cluster}
	for _, n := range f.Nodes {
		all = append(all, n)
	}
	return all
}

func TestSeriesOfACluster(t *testing.T) {
	m := New(reader(t, demo()...))
	key := types.NamespacedName{Namespace: "team-a", Name: "demo"}
	m.Pass(key, 30*time.Millisecond, nil)
	m.Pass(key, time.Second, errors.New("x"))
	m.Action(key, "MoveSlots", nil)
	m.Action(key, "MoveSlots", errors.New("x"))
	want, err := os.ReadFile("testdata/demo.prom")
	if err != nil {
		t.Fatal(err)
	}
	if err := testutil.CollectAndCompare(m, strings.NewReader(string(want))); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(m); err != nil || len(problems) > 0 {
		t.Errorf("names: %v, %v", problems, err)
	}
}

func TestSeriesVanishWithTheirCluster(t *testing.T) {
	objects := demo()
	c := reader(t, objects...)
	m := New(c)
	key := types.NamespacedName{Namespace: "team-a", Name: "demo"}
	m.Pass(key, time.Second, nil)
	m.Action(key, "Forget", nil)
	m.Pass(types.NamespacedName{Namespace: "team-a", Name: "other"}, time.Second, nil)
	if n := count(t, m, "demo"); n == 0 {
		t.Fatal("there is no series to vanish")
	}
	for _, o := range objects {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	m.Forget(key)
	if n := count(t, m, "demo"); n != 0 {
		t.Errorf("%d series are left of a cluster that is gone", n)
	}
	if n := count(t, m, "other"); n == 0 {
		t.Error("those of another cluster vanished too")
	}
}

// count counts the series of a cluster.
func count(t *testing.T, m *Metrics, name string) int {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "cluster" && label.GetValue() == name {
					n++
				}
			}
		}
	}
	return n
}

func TestMetricsThatAreOffCountNothing(*testing.T) {
	var m *Metrics
	m.Pass(types.NamespacedName{}, 0, nil)
	m.Action(types.NamespacedName{}, "", nil)
	m.Forget(types.NamespacedName{})
}

var metricName = regexp.MustCompile(`valkey_[a-z_]+`)

// The alerts speak of series that exist. That they parse is checked by Prometheus's
// own code, in the module deploy/alerts/check.
func TestAlertsSpeakOfSeriesThatExist(t *testing.T) {
	text, err := os.ReadFile("../../deploy/alerts/valkey.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalStrict(text, &struct{ Groups any }{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"valkey_reconcile_total": true, "valkey_reconcile_duration_seconds": true, "valkey_actions_total": true}
	for _, g := range gauges {
		known[g.name] = true
	}
	rules := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			rules++
			names := metricName.FindAllString(rule.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s speaks of no series", rule.Alert)
			}
			for _, name := range names {
				if !known[name] {
					t.Errorf("%s speaks of %s, which does not exist", rule.Alert, name)
				}
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s lacks summary, description or severity", rule.Alert)
			}
		}
	}
	if rules == 0 {
		t.Error("there is no rule")
	}
}
