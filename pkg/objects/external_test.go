package objects_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func exposed(access v1alpha1.ExternalAccess) *v1alpha1.ValkeyCluster {
	c := cluster()
	access.Enabled = true
	c.Spec.ExternalAccess = &access
	return c
}

// allocated is a Service as the API server returns it.
func allocated(s *corev1.Service) *corev1.Service {
	live := s.DeepCopy()
	live.Spec.ClusterIP, live.Spec.ClusterIPs = "10.96.0.10", []string{"10.96.0.10"}
	live.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	live.Spec.SessionAffinity = corev1.ServiceAffinityNone
	if live.Spec.Type == "" {
		live.Spec.Type = corev1.ServiceTypeClusterIP
	}
	if live.Spec.Type != corev1.ServiceTypeClusterIP {
		for i := range live.Spec.Ports {
			if live.Spec.Ports[i].NodePort == 0 {
				live.Spec.Ports[i].NodePort = 31000 + int32(i)
			}
		}
	}
	return live
}

// S1-18 to S1-22, S1-25, S1-26, S1-116: the Service of a shard.
func TestTheServiceOfAShardHasOnePortForEachNode(t *testing.T) {
	access := v1alpha1.ExternalAccess{
		Domain: "valkey.example.com", HostnamePrefix: "cache",
		ServiceAnnotations: map[string]string{"dns.example.com/hostname": "{hostname}", "example.com/shard": "shard {shard} of many"},
	}
	golden(t, "external-service", objects.ShardService(exposed(access), 2, 2))
	for nodes := int32(1); nodes <= 6; nodes++ {
		service := objects.ShardService(exposed(v1alpha1.ExternalAccess{}), 0, nodes)
		names, numbers := map[string]bool{}, map[int32]bool{}
		for i, port := range service.Spec.Ports {
			names[port.Name], numbers[port.Port] = true, true
			if port.NodePort != 0 {
				t.Errorf("the manager chose node port %d", port.NodePort)
			}
			if want := objects.ExternalPortName(int32(i)); port.TargetPort.StrVal != want || port.Name != want {
				t.Errorf("port %d targets %v, want %s", i, port.TargetPort, want)
			}
			if problems := validation.IsValidPortName(port.Name); len(problems) > 0 {
				t.Errorf("%s: %v", port.Name, problems)
			}
		}
		if len(names) != int(nodes) || len(numbers) != int(nodes) {
			t.Errorf("%d nodes: ports %v, %v", nodes, names, numbers)
		}
	}
}

// S1-47, S1-70, S1-71
func TestTheTypeOfShardServices(t *testing.T) {
	gateway := &v1alpha1.GatewayAccess{GatewayRef: v1alpha1.GatewayReference{Name: "public"}, BasePort: 30000}
	for name, tc := range map[string]struct {
		access v1alpha1.ExternalAccess
		want   corev1.ServiceType
		policy corev1.ServiceExternalTrafficPolicy
	}{
		"by default":                {want: corev1.ServiceTypeNodePort, policy: "Cluster"},
		"behind a gateway":          {access: v1alpha1.ExternalAccess{Gateway: gateway}, want: corev1.ServiceTypeClusterIP},
		"beside a gateway":          {access: v1alpha1.ExternalAccess{Gateway: gateway, ServiceType: "NodePort"}, want: corev1.ServiceTypeNodePort, policy: "Cluster"},
		"a load balancer, Local":    {access: v1alpha1.ExternalAccess{ServiceType: "LoadBalancer", ExternalTrafficPolicy: "Local"}, want: corev1.ServiceTypeLoadBalancer, policy: "Local"},
		"a ClusterIP has no policy": {access: v1alpha1.ExternalAccess{ServiceType: "ClusterIP", ExternalTrafficPolicy: "Local"}, want: corev1.ServiceTypeClusterIP},
	} {
		got := objects.ShardService(exposed(tc.access), 0, 1).Spec
		if got.Type != tc.want || got.ExternalTrafficPolicy != tc.policy {
			t.Errorf("%s: type %s, policy %q; want %s, %q", name, got.Type, got.ExternalTrafficPolicy, tc.want, tc.policy)
		}
	}
}

// S1-112, E-10, H-02: what the API server and others add is no reason to write, and
// node ports survive every change.
func TestAShardServiceKeepsWhatOthersAdded(t *testing.T) {
	access := v1alpha1.ExternalAccess{ServiceType: "LoadBalancer", ServiceAnnotations: map[string]string{"a.example.com/x": "{shard}", "b": "1"}}
	live := allocated(objects.ShardService(exposed(access), 1, 2))
	class := "service.k8s.aws/nlb"
	live.Spec.LoadBalancerClass = &class
	live.Annotations["cloud.example.com/state"] = "made"
	live.Labels["team"] = "a"
	live.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"}
	untouched := live.DeepCopy()
	if objects.UpdateShardService(live, objects.ShardService(exposed(access), 1, 2)) {
		t.Errorf("an update without a change: %s", cmp.Diff(untouched, live))
	}
	ports := objects.NodePorts(live)
	access.ServiceAnnotations = map[string]string{"b": "2"}
	access.ExternalTrafficPolicy = "Local"
	if !objects.UpdateShardService(live, objects.ShardService(exposed(access), 1, 3)) {
		t.Fatal("no change was noticed")
	}
	want := map[string]string{"b": "2", "cloud.example.com/state": "made", v1alpha1.AnnotationKeys: "b"}
	if !maps.Equal(live.Annotations, want) {
		t.Errorf("annotations %v, want %v", live.Annotations, want)
	}
	if live.Labels["team"] != "a" || len(live.Finalizers) != 1 || live.Spec.LoadBalancerClass != &class {
		t.Errorf("what others added is gone: %+v", live)
	}
	if got := objects.NodePorts(live); !slices.Equal(got, append(ports, 0)) {
		t.Errorf("node ports %v, had %v", got, ports)
	}
	access.ServiceAnnotations = nil
	objects.UpdateShardService(live, objects.ShardService(exposed(access), 1, 1))
	if want := map[string]string{"cloud.example.com/state": "made"}; !maps.Equal(live.Annotations, want) {
		t.Errorf("annotations %v, want %v", live.Annotations, want)
	}
	if got := objects.NodePorts(live); !slices.Equal(got, ports[:1]) {
		t.Errorf("node ports %v, want %v", got, ports[:1])
	}
	live.Spec.Selector["app.kubernetes.io/instance"] = "another"
	if !objects.UpdateShardService(live, objects.ShardService(exposed(access), 1, 1)) || live.Spec.Selector["app.kubernetes.io/instance"] != "my-cluster" {
		t.Error("a selector that leads elsewhere was left")
	}
	access.ServiceType = "ClusterIP"
	objects.UpdateShardService(live, objects.ShardService(exposed(access), 1, 1))
	if got := objects.NodePorts(live); live.Spec.Type != "ClusterIP" || got[0] != 0 || live.Spec.ExternalTrafficPolicy != "" {
		t.Errorf("type %s, node ports %v, policy %q", live.Spec.Type, got, live.Spec.ExternalTrafficPolicy)
	}
}

func TestAddressesOfALoadBalancer(t *testing.T) {
	service := &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
		{IP: "203.0.113.5"}, {Hostname: "lb.example.com"}, {IP: "2001:db8::1", Hostname: "six.example.com"},
	}}}}
	want := []string{"203.0.113.5", "lb.example.com", "2001:db8::1", "six.example.com"}
	if got := objects.LoadBalancerAddresses(service); !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	if got := objects.LoadBalancerAddresses(&corev1.Service{}); got != nil {
		t.Errorf("pending: %v", got)
	}
}
