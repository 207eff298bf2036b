package create

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// parse reads flags as the command does.
func parse(t *testing.T, args ...string) (*wish, *pflag.FlagSet) {
	t.Helper()
	w := &wish{}
	fs := pflag.NewFlagSet("create", pflag.ContinueOnError)
	w.addFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return w, fs
}

var shape = []string{"--config", "standard", "--shards", "3", "--replicas", "1"}

func TestEveryFieldOfTheSpecHasAFlag(t *testing.T) {
	w, fs := parse(t, append(shape,
		"--tls-secret", "demo-tls", "--paused", "--pod-annotation", "a=b,c=d", "--pod-annotation", "e=",
		"--zones", "a,b", "--zone-spread", "required", "--node-selector", "disk=ssd", "--priority-class", "high",
		"--toleration", "dedicated=valkey:NoSchedule", "--toleration", "spot:NoExecute:300", "--toleration", "gpu",
		"--external", "--service-type", "LoadBalancer", "--external-traffic-policy", "Local",
		"--service-annotation", "dns={hostname}", "--hostname-prefix", "vk", "--domain", "valkey.example.com",
		"--preferred-endpoint-type", "hostname", "--gateway", "edge/public", "--gateway-base-port", "30000",
	)...)
	if err := w.check("demo", fs); err != nil {
		t.Fatal(err)
	}
	acl := []v1alpha1.ACLBinding{{Username: "app"}}
	c, err := w.cluster("team-a", "demo", acl)
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.ValkeyClusterSpec{
		ConfigRef: "standard", Shards: 3, ReplicasPerShard: 1, ACL: acl, Paused: true,
		TLS:            &v1alpha1.TLS{SecretRef: "demo-tls"},
		PodAnnotations: map[string]string{"a": "b,c=d", "e": ""},
		Placement: &v1alpha1.Placement{
			Zones: []string{"a", "b"}, ZoneSpread: v1alpha1.ZoneSpreadRequired,
			NodeSelector: map[string]v1alpha1.NodeLabelValue{"disk": "ssd"}, PriorityClassName: "high",
			Tolerations: []corev1.Toleration{
				{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "valkey", Effect: corev1.TaintEffectNoSchedule},
				{Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
				{Key: "gpu", Operator: corev1.TolerationOpExists},
			},
		},
		ExternalAccess: &v1alpha1.ExternalAccess{
			Enabled: true, ServiceType: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			ServiceAnnotations: map[string]string{"dns": "{hostname}"}, HostnamePrefix: "vk", Domain: "valkey.example.com",
			PreferredEndpointType: v1alpha1.EndpointHostname,
			Gateway:               &v1alpha1.GatewayAccess{GatewayRef: v1alpha1.GatewayReference{Namespace: "edge", Name: "public"}, BasePort: 30000},
		},
	}
	if diff := cmp.Diff(want, c.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	// A field that nobody gave a flag would be at its zero value here.
	for field, zero := range map[string]bool{
		"configRef": c.Spec.ConfigRef == "", "acl": c.Spec.ACL == nil, "placement": c.Spec.Placement == nil,
		"tls": c.Spec.TLS == nil, "podAnnotations": c.Spec.PodAnnotations == nil, "externalAccess": c.Spec.ExternalAccess == nil,
	} {
		if zero {
			t.Errorf("%s can't be set", field)
		}
	}
}

func TestWhatIsNotAskedForIsNotInTheSpec(t *testing.T) {
	w, fs := parse(t, shape...)
	if err := w.check("demo", fs); err != nil {
		t.Fatal(err)
	}
	c, err := w.cluster("team-a", "demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v1alpha1.ValkeyClusterSpec{ConfigRef: "standard", Shards: 3, ReplicasPerShard: 1}, c.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestWrongFlagsAreRefusedWithWhatToDo(t *testing.T) {
	tests := []struct {
		name, args, want string
	}{
		{"demo", "--config x --shards 0 --replicas 1", "--shards is 0; it must be from 1 to 1000"},
		{"demo", "--config x --shards 1001 --replicas 1", "--shards is 1001; it must be from 1 to 1000"},
		{"demo", "--config x --shards 1 --replicas 6", "--replicas is 6; it must be from 0 to 5"},
		{"demo", "--shards 1 --replicas 0", "--config must be given"},
		{"demo", "--config= --shards 1 --replicas 0", "--config must not be empty"},
		{"demo", "", "--config, --shards, --replicas must be given"},
		{"Demo", "--config x --shards 1 --replicas 0", `name "Demo" is not allowed: use a lower-case letter`},
		{"1demo", "--config x --shards 1 --replicas 0", "is not allowed"},
		{"de.mo", "--config x --shards 1 --replicas 0", "is not allowed"},
		{strings.Repeat("a", 54), "--config x --shards 1 --replicas 0", "has 54 characters; at most 53 are allowed"},
		{"demo", "--config x --shards 1 --replicas 0 --zone-spread strict", `--zone-spread "strict" is not known: use bestEffort, required`},
		{"demo", "--config x --shards 1 --replicas 0 --domain a.b", "--domain needs --external"},
		{"demo", "--config x --shards 1 --replicas 0 --external --service-type Node", `--service-type "Node" is not known: use NodePort, LoadBalancer, ClusterIP`},
		{"demo", "--config x --shards 1 --replicas 0 --external --preferred-endpoint-type hostname", "needs --domain"},
		{"demo", "--config x --shards 1 --replicas 0 --external --gateway g", "--gateway needs --gateway-base-port"},
		{"demo", "--config x --shards 1 --replicas 0 --external --gateway-base-port 1", "--gateway-base-port needs --gateway"},
		{"demo", "--config x --shards 3 --replicas 1 --external --gateway g --gateway-base-port 65531", "the last of the 6 nodes would have port 65536"},
		{"demo", "--config x --shards 1 --replicas 0 --tls-secret demo-operator-tls", "that is the manager's own copy"},
		{"demo", "--config x --shards 1 --replicas 0 --pod-annotation valkey.gomomento.com/x=y", "belong to the manager"},
	}
	for _, tt := range tests {
		w, fs := parse(t, strings.Fields(tt.args)...)
		err := w.check(tt.name, fs)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("create %s %s: error %v, want %q", tt.name, tt.args, err, tt.want)
		}
	}
}

func TestTheLongestNameIsAccepted(t *testing.T) {
	if err := kube.CheckClusterName(strings.Repeat("a", v1alpha1.MaxClusterNameLength)); err != nil {
		t.Error(err)
	}
}

func TestWrongValuesAreQuoted(t *testing.T) {
	for args, want := range map[string]string{
		"--pod-annotation novalue":                `--pod-annotation "novalue" must be key=value`,
		"--node-selector a=b --node-selector a=c": "--node-selector a is given twice",
		"--toleration a=b:Never":                  `effect "Never" is not known`,
		"--toleration :NoSchedule":                "name the taint's key",
		"--toleration a:NoSchedule:5":             "only NoExecute may be followed",
	} {
		w, _ := parse(t, append(shape, strings.Fields(args)...)...)
		if _, err := w.cluster(plugintest.Namespace, "demo", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
}
