package objects

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Place is a node's place in its cluster.
type Place struct {
	Shard, Index int32
}

// RouteState is what is known of the TCPRoute of a place.
type RouteState struct {
	// Port of the listener that the route is attached to now.
	Port int32
	// Accepted is whether the Gateway has taken the route.
	Accepted bool
	// Why it has not, in words.
	Why string
}

// GatewayState is what is known of the Gateway in front of a cluster and of its
// routes.
type GatewayState struct {
	// Missing says why there can be no routes at all; empty if there can.
	Missing string
	// Addresses of the Gateway.
	Addresses []string
	Routes    map[Place]RouteState
}

// ExternalInput is what the way to a cluster from outside follows from.
type ExternalInput struct {
	Cluster *v1alpha1.ValkeyCluster
	// Nodes is the number of nodes that have a port, by shard.
	Nodes []int32
	// Services by shard; those that there are.
	Services map[int32]*corev1.Service
	Gateway  GatewayState
}

// GatewayPort is the listener of a node.
func GatewayPort(external *v1alpha1.ExternalAccess, replicasPerShard int32, at Place) int32 {
	return external.Gateway.BasePort + at.Shard*(replicasPerShard+1) + at.Index
}

// ExternalEndpoints tell how each shard is reached from outside, and what that still
// waits for, by shard. A port that isn't known yet is 0.
func ExternalEndpoints(in ExternalInput) (endpoints []v1alpha1.ExternalEndpoint, pending map[int32]string) {
	pending = map[int32]string{}
	external := in.Cluster.Spec.ExternalAccess
	for i, nodes := range in.Nodes {
		shard := int32(i)
		endpoint := v1alpha1.ExternalEndpoint{
			ShardIndex: shard, Service: ShardServiceName(in.Cluster.Name, shard), Hostname: announce.ShardHostname(external, shard),
		}
		service := in.Services[shard]
		if service != nil && service.Spec.Type != corev1.ServiceTypeClusterIP {
			endpoint.NodePorts = NodePorts(service)
		}
		var missing []string
		for index := range nodes {
			port, why := in.port(service, Place{shard, index})
			endpoint.Ports = append(endpoint.Ports, port)
			if why != "" {
				missing = append(missing, why)
			}
		}
		switch {
		case external.Gateway != nil:
			endpoint.Addresses = in.Gateway.Addresses
		case service != nil && service.Spec.Type == corev1.ServiceTypeLoadBalancer:
			endpoint.Addresses = LoadBalancerAddresses(service)
			if len(endpoint.Addresses) == 0 {
				missing = append(missing, fmt.Sprintf("the load balancer of Service %s has no address yet", service.Name))
			}
		}
		if len(missing) > 0 {
			pending[shard] = missing[0]
			if more := len(missing) - 1; more > 0 {
				pending[shard] += fmt.Sprintf(" (and %d more of shard %d)", more, shard)
			}
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints, pending
}

// port returns the port of a node outside, and what it still waits for.
func (in ExternalInput) port(service *corev1.Service, at Place) (int32, string) {
	external := in.Cluster.Spec.ExternalAccess
	if service == nil {
		return 0, fmt.Sprintf("Service %s does not exist yet", ShardServiceName(in.Cluster.Name, at.Shard))
	}
	port, ok := ServicePort(service, at.Index)
	if !ok {
		return 0, fmt.Sprintf("Service %s has no port %s yet", service.Name, ExternalPortName(at.Index))
	}
	if external.Gateway != nil {
		return in.listener(at)
	}
	if service.Spec.Type != corev1.ServiceTypeNodePort {
		return port.Port, ""
	}
	if port.NodePort == 0 {
		return 0, fmt.Sprintf("Kubernetes has not allocated the node port %s of Service %s yet", port.Name, service.Name)
	}
	return port.NodePort, ""
}

func (in ExternalInput) listener(at Place) (int32, string) {
	want := GatewayPort(in.Cluster.Spec.ExternalAccess, in.Cluster.Spec.ReplicasPerShard, at)
	name := RouteName(in.Cluster.Name, at)
	route, ok := in.Gateway.Routes[at]
	switch {
	case in.Gateway.Missing != "":
		return want, in.Gateway.Missing
	case !ok:
		return want, fmt.Sprintf("TCPRoute %s does not exist yet", name)
	case route.Port != want:
		return want, fmt.Sprintf("TCPRoute %s is attached to port %d, not %d yet", name, route.Port, want)
	case !route.Accepted:
		return want, strings.TrimSuffix(fmt.Sprintf("TCPRoute %s is not accepted by Gateway %s: %s", name, in.Cluster.Spec.ExternalAccess.Gateway.GatewayRef.Name, route.Why), ": ")
	}
	return want, ""
}

// RouteName is the TCPRoute of a node's place.
func RouteName(cluster string, at Place) string {
	return ShardServiceName(cluster, at.Shard) + "-" + formatIndex(at.Index)
}
