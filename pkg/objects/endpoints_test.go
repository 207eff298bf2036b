package objects_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// outside are the Services of a cluster of two shards with one replica.
func outside(c *v1alpha1.ValkeyCluster) objects.ExternalInput {
	in := objects.ExternalInput{Cluster: c, Nodes: []int32{2, 2}, Services: map[int32]*corev1.Service{}}
	for shard := range int32(2) {
		service := allocated(objects.ShardService(c, shard, 2))
		for i := range service.Spec.Ports {
			if service.Spec.Ports[i].NodePort != 0 {
				service.Spec.Ports[i].NodePort += 10 * shard
			}
		}
		in.Services[shard] = service
	}
	return in
}

// E-05, S1-28, S1-29, S1-58, S1-82, S1-91, S1-113
func TestWhereAShardIsReachedFromOutside(t *testing.T) {
	in := outside(exposed(v1alpha1.ExternalAccess{Domain: "example.com"}))
	endpoints, pending := objects.ExternalEndpoints(in)
	if len(pending) > 0 {
		t.Errorf("pending: %v", pending)
	}
	second := endpoints[1]
	if second.ShardIndex != 1 || second.Service != "my-cluster-shard-1" || second.Hostname != "shard-1.example.com" ||
		!slices.Equal(second.Ports, []int32{31010, 31011}) || !slices.Equal(second.NodePorts, second.Ports) || second.Addresses != nil {
		t.Errorf("node ports: %+v", second)
	}
	in.Services[1].Spec.Ports[1].NodePort = 0
	if endpoints, pending = objects.ExternalEndpoints(in); endpoints[1].Ports[1] != 0 || !strings.Contains(pending[1], "vk-n1") || pending[0] != "" {
		t.Errorf("a node port that is not allocated: %+v, %v", endpoints[1], pending)
	}
	delete(in.Services, 0)
	if _, pending = objects.ExternalEndpoints(in); !strings.Contains(pending[0], "my-cluster-shard-0 does not exist yet") {
		t.Errorf("a Service that is missing: %v", pending)
	}

	// E-07
	in = outside(exposed(v1alpha1.ExternalAccess{ServiceType: "LoadBalancer"}))
	in.Services[1].Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.5"}, {Hostname: "lb.example.com"}}
	endpoints, pending = objects.ExternalEndpoints(in)
	if !strings.Contains(pending[0], "my-cluster-shard-0 has no address") || pending[1] != "" {
		t.Errorf("pending: %v", pending)
	}
	if !slices.Equal(endpoints[1].Addresses, []string{"203.0.113.5", "lb.example.com"}) || !slices.Equal(endpoints[1].Ports, []int32{6379, 6380}) {
		t.Errorf("load balancer: %+v", endpoints[1])
	}

	endpoints, pending = objects.ExternalEndpoints(outside(exposed(v1alpha1.ExternalAccess{ServiceType: "ClusterIP"})))
	if len(pending) > 0 || !slices.Equal(endpoints[0].Ports, []int32{6379, 6380}) || endpoints[0].NodePorts != nil {
		t.Errorf("ClusterIP: %+v, %v", endpoints[0], pending)
	}
}

// S1-49, S1-50, G-03
func TestEachNodeHasAListenerOfItsOwn(t *testing.T) {
	gateway := &v1alpha1.GatewayAccess{GatewayRef: v1alpha1.GatewayReference{Name: "public"}, BasePort: 30000}
	c := exposed(v1alpha1.ExternalAccess{Gateway: gateway})
	seen := map[int32]bool{}
	for shard := range int32(5) {
		for index := range int32(3) {
			port := objects.GatewayPort(c.Spec.ExternalAccess, 2, objects.Place{Shard: shard, Index: index})
			if seen[port] || port != 30000+shard*3+index {
				t.Errorf("shard %d, node %d has port %d", shard, index, port)
			}
			seen[port] = true
		}
	}
	in := outside(c)
	in.Gateway.Missing = "the API server has no TCPRoutes"
	if _, pending := objects.ExternalEndpoints(in); pending[0] != "the API server has no TCPRoutes (and 1 more of shard 0)" {
		t.Errorf("pending: %v", pending)
	}
	in.Gateway = objects.GatewayState{Addresses: []string{"203.0.113.9"}, Routes: map[objects.Place]objects.RouteState{
		{}: {Port: 30000, Accepted: true}, {Index: 1}: {Port: 30001, Accepted: true},
		{Shard: 1}: {Port: 30002, Why: "no such listener"}, {Shard: 1, Index: 1}: {Port: 30003, Accepted: true},
	}}
	endpoints, pending := objects.ExternalEndpoints(in)
	if pending[0] != "" || pending[1] != "TCPRoute my-cluster-shard-1-0 is not accepted by Gateway public: no such listener" {
		t.Errorf("pending: %v", pending)
	}
	if !slices.Equal(endpoints[1].Ports, []int32{30002, 30003}) || !slices.Equal(endpoints[1].Addresses, []string{"203.0.113.9"}) {
		t.Errorf("endpoint: %+v", endpoints[1])
	}
}
