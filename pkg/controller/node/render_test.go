package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// An API server of one family makes no Service of the other, so the families are
// put into the Service here.
func TestServersBindTheAddressFamiliesOfTheHeadlessService(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha1.ValkeyCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	node := objects.Node(cluster, objects.NodeInput{Name: "c-0a1b2"})
	for _, tc := range []struct {
		families []corev1.IPFamily
		want     string
	}{
		{[]corev1.IPFamily{corev1.IPv4Protocol}, "bind 0.0.0.0\n"},
		{[]corev1.IPFamily{corev1.IPv6Protocol}, "bind 0.0.0.0 ::\n"},
		{[]corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, "bind 0.0.0.0 ::\n"},
	} {
		service := objects.HeadlessService(cluster)
		service.Spec.IPFamilies = tc.families
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(service).Build()
		r := &Reconciler{Client: c, Live: c, Options: Options{ClusterDomain: "kube.prod"}}
		conf, err := r.render(t.Context(), cluster, node)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(conf, tc.want) {
			t.Errorf("V-01: %v: no %q in\n%s", tc.families, tc.want, conf)
		}
	}
}

func TestARefusedPodIsTriedAgainMoreAndMoreSlowly(t *testing.T) {
	start := time.Unix(1000, 0)
	node := &v1alpha1.ValkeyNode{Status: v1alpha1.ValkeyNodeStatus{Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionPodCreated, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(start),
	}}}}
	for since, want := range map[time.Duration]time.Duration{
		0:                minRetry,
		3 * time.Second:  minRetry,
		10 * time.Second: 5 * time.Second,
		time.Hour:        maxRetry,
		-time.Minute:     minRetry, // clocks differ
	} {
		r := &Reconciler{now: func() time.Time { return start.Add(since) }}
		if got := r.retryIn(node); got != want {
			t.Errorf("after %s: %s, want %s", since, got, want)
		}
	}
}

// S1-02, S1-101, S1-110: with external access off, whatever else the block says, all
// that is rendered is byte for byte what it is without the block.
func TestExternalAccessThatIsOffRendersNothing(t *testing.T) {
	off := &v1alpha1.ExternalAccess{
		ServiceType: corev1.ServiceTypeLoadBalancer, ServiceAnnotations: map[string]string{"a": "b"}, HostnamePrefix: "cache",
		Domain: "valkey.example.com", PreferredEndpointType: v1alpha1.EndpointHostname,
		Gateway: &v1alpha1.GatewayAccess{GatewayRef: v1alpha1.GatewayReference{Name: "public"}, BasePort: 30000},
	}
	for _, tls := range []bool{false, true} {
		want := rendered(t, nil, tls)
		for name, access := range map[string]*v1alpha1.ExternalAccess{"an empty block": {}, "everything but enabled": off} {
			if diff := cmp.Diff(want, rendered(t, access, tls)); diff != "" {
				t.Errorf("TLS %t, %s:\n%s", tls, name, diff)
			}
		}
		on := off.DeepCopy()
		on.Enabled = true
		if rendered(t, on, tls) == want {
			t.Errorf("TLS %t: external access renders nothing", tls)
		}
	}
}

// rendered is the text of a node, its pod and its valkey.conf.
func rendered(t *testing.T, access *v1alpha1.ExternalAccess, encrypted bool) string {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha1.ValkeyCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	cluster.Spec.ExternalAccess = access
	objs := []client.Object{objects.HeadlessService(cluster)}
	if encrypted {
		cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
		objs = append(objs, objects.TLSSecret(cluster, objects.TLSMaterial{CA: []byte("ca"), Certificate: []byte("leaf"), Key: []byte("key")}))
	}
	node := objects.Node(cluster, objects.NodeInput{Name: "c-0a1b2", ShardIndex: 1, Settings: map[string]string{"maxmemory-policy": "allkeys-lru"}})
	objs = append(objs, node)
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(node).WithObjects(objs...).Build()
	r := &Reconciler{Client: c, Live: c, Options: Options{ClusterDomain: "kube.prod"}}
	conf, err := r.render(t.Context(), cluster, node)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal([]any{objects.NodeConfigMap(node, conf), objects.Pod(node, objects.PodInput{}), node.Spec})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// S1-17, S1-62: a node of a cluster that gives names from the start announces its name
// and node port from its first moment, and that is written down before it has a pod.
func TestANodeStartsWithWhatItAnnounces(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha1.ValkeyCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	cluster.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true, Domain: "valkey.example.com", PreferredEndpointType: v1alpha1.EndpointHostname}
	service := objects.ShardService(cluster, 2, 2)
	service.Spec.Ports[0].NodePort, service.Spec.Ports[1].NodePort = 31000, 31001
	node := objects.Node(cluster, objects.NodeInput{Name: "c-0a1b2", ShardIndex: 2, NodeIndex: 1})
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(node).WithObjects(objects.HeadlessService(cluster), service, node).Build()
	r := &Reconciler{Client: c, Live: c, Options: Options{ClusterDomain: "kube.prod"}}
	conf, err := r.render(t.Context(), cluster, node)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"cluster-announce-hostname shard-2.valkey.example.com\n", "cluster-preferred-endpoint-type hostname\n",
		"cluster-announce-client-port 31001\n", "cluster-announce-human-nodename c-0a1b2\n",
	} {
		if !strings.Contains(conf, line) {
			t.Errorf("no %q in\n%s", line, conf)
		}
	}
	live := &v1alpha1.ValkeyNode{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), live); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.Announcement{Hostname: "shard-2.valkey.example.com", EndpointType: "hostname", ClientPort: 31001}
	if live.Status.Applied == nil || live.Status.Applied.Announcement == nil || *live.Status.Applied.Announcement != want {
		t.Errorf("recorded %+v, want %+v", live.Status.Applied, want)
	}
}
