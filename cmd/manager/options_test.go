package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestWithoutSettingsTheManagerBindsNoPortAndElectsALeader(t *testing.T) {
	o, err := parse(nil, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	m := o.manager(runtime.NewScheme())
	if m.Metrics.BindAddress != "0" || m.HealthProbeBindAddress != "0" || m.WebhookServer != nil {
		t.Errorf("it binds metrics %q, probes %q, webhooks %v", m.Metrics.BindAddress, m.HealthProbeBindAddress, m.WebhookServer)
	}
	if !m.LeaderElection || o.clusterDomain != "cluster.local" || o.defaultZoneSpread != v1alpha1.ZoneSpreadBestEffort {
		t.Errorf("defaults are %+v", o)
	}
	if len(m.Cache.DefaultNamespaces) != 0 {
		t.Errorf("it watches %v only", m.Cache.DefaultNamespaces)
	}
}

// controller-runtime takes an empty address of metrics for :8080.
func TestAnEmptyAddressBindsNoPort(t *testing.T) {
	o, err := parse([]string{"--metrics-bind-address=", "--health-probe-bind-address="}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if m := o.manager(runtime.NewScheme()); m.Metrics.BindAddress != "0" || m.HealthProbeBindAddress != "0" {
		t.Errorf("it binds metrics %q, probes %q", m.Metrics.BindAddress, m.HealthProbeBindAddress)
	}
	for _, address := range []string{":0", ":8080", "127.0.0.1:8080", "[::1]:8080", "localhost:8080"} {
		if _, err := parse([]string{"--metrics-bind-address=" + address}, environment(nil)); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestSettingsComeFromFlagsBeforeTheEnvironment(t *testing.T) {
	env := environment(map[string]string{"DEFAULT_ZONE_SPREAD": "required", "CLUSTER_DOMAIN": "kube.prod", "WATCH_NAMESPACES": "a, b", "LOG_LEVEL": " "})
	o, err := parse([]string{"--cluster-domain=other.local"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if o.clusterDomain != "other.local" || o.defaultZoneSpread != v1alpha1.ZoneSpreadRequired || strings.Join(o.namespaces, "+") != "a+b" {
		t.Errorf("read as %+v", o)
	}
	if m := o.manager(runtime.NewScheme()); len(m.Cache.DefaultNamespaces) != 2 {
		t.Errorf("the cache watches %v", m.Cache.DefaultNamespaces)
	}
}

func TestABadSettingIsNamedWithWhatIsAllowed(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  map[string]string
		want []string
	}{
		{nil, map[string]string{"DEFAULT_ZONE_SPREAD": "soft"}, []string{"DEFAULT_ZONE_SPREAD", `"soft"`, "bestEffort", "required"}},
		{[]string{"--cluster-domain=a_b"}, nil, []string{"CLUSTER_DOMAIN", "a_b"}},
		{[]string{"--watch-namespaces=ok,Not_OK"}, nil, []string{"WATCH_NAMESPACES", "Not_OK"}},
		{[]string{"--log-level=loud"}, nil, []string{"LOG_LEVEL", "loud", "debug"}},
		{nil, map[string]string{"WATCH_NAMESPACES": " , "}, []string{"WATCH_NAMESPACES", "names no namespace", "all"}},
		{[]string{"--metrics-bind-address=8080"}, nil, []string{"--metrics-bind-address", `"8080"`, ":8080", "0"}},
		{[]string{"--metrics-bind-address=:99999"}, nil, []string{"--metrics-bind-address", ":99999"}},
		{[]string{"--health-probe-bind-address=localhost"}, nil, []string{"--health-probe-bind-address", "localhost"}},
		{[]string{"--leader-election-namespace=A/B"}, nil, []string{"--leader-election-namespace", "A/B"}},
		{[]string{"--no-such-flag"}, nil, []string{"no-such-flag"}},
		{[]string{"stray"}, nil, []string{"stray", "flags only"}},
	} {
		_, err := parse(c.args, environment(c.env))
		if err == nil {
			t.Errorf("%v %v is accepted", c.args, c.env)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v %v: %q does not mention %q", c.args, c.env, err, part)
			}
		}
	}
}

// H-04
func TestOfSecretsNoDataAndNoAnnotationIsCached(t *testing.T) {
	o, err := parse(nil, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	m := o.manager(runtime.NewScheme())
	if len(m.Client.Cache.DisableFor) != 1 {
		t.Errorf("read from the API server: %v", m.Client.Cache.DisableFor)
	}
	for obj, by := range m.Cache.ByObject {
		if _, ok := obj.(*corev1.Secret); !ok {
			continue
		}
		if !strings.Contains(by.Field.String(), "helm.sh/release.v1") {
			t.Errorf("the releases of Helm are not left out: %s", by.Field)
		}
		secret := &corev1.Secret{}
		secret.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "secret"}
		if _, err := by.Transform(secret); err != nil || len(secret.Annotations) != 0 {
			t.Errorf("annotations are kept: %v, %v", secret.Annotations, err)
		}
	}
}
