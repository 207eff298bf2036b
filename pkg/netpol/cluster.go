package netpol

import (
	"maps"
	"strconv"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// ManagedBy marks the policies that come from here. It is not the manager's mark:
// the manager neither makes nor watches them.
const ManagedBy = "kubectl-valkey"

// DefaultDenyName is the policy that closes a namespace.
const DefaultDenyName = "valkey-default-deny"

// Cluster is what policies for one ValkeyCluster depend on.
type Cluster struct {
	Namespace, Name string
	// TLS is whether the cluster has spec.tls: then the kubelet connects to the
	// servers, row 7.
	TLS bool
	// Clients may connect to the servers.
	Clients []Client
	// ExternalCIDRs are the source addresses of external access as the servers
	// see them.
	ExternalCIDRs []string
	// KubeletCIDRs are the addresses of Kubernetes nodes, for network plugins that
	// don't exempt the probes of the kubelet.
	KubeletCIDRs []string
	Manager      ManagerAt
	// Egress restricts where the servers connect to as well.
	Egress bool
	// DNSPorts are those of resolvers beside 53.
	DNSPorts []int32
	// DefaultDeny also closes the namespace to everything that no policy allows.
	DefaultDeny bool
}

// PolicyName of a cluster's policy.
func PolicyName(cluster string) string { return cluster + "-valkey" }

// ClientPolicyName of the policy for a kind of a cluster's clients, from 0.
func ClientPolicyName(cluster string, kind int) string {
	name := cluster + "-valkey-clients"
	if kind > 0 {
		name += "-" + strconv.Itoa(kind+1)
	}
	return name
}

// Policies for the cluster's namespace, the one for its servers first.
func (c Cluster) Policies() []*networkingv1.NetworkPolicy {
	all := []*networkingv1.NetworkPolicy{c.servers()}
	if !c.DefaultDeny {
		return all
	}
	if c.Egress {
		all = append(all, c.clients()...)
	}
	return append(all, c.deny())
}

func (c Cluster) own() networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: objects.PodSelector(c.Name)}}
}

func (c Cluster) servers() *networkingv1.NetworkPolicy {
	p := policy(c.Namespace, PolicyName(c.Name))
	maps.Copy(p.Labels, map[string]string{v1alpha1.LabelInstance: c.Name})
	p.Spec.PodSelector = *c.own().PodSelector
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	admit := func(from Party, peers ...networkingv1.NetworkPolicyPeer) {
		// A rule without peers admits everybody.
		if len(peers) > 0 {
			p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: peers, Ports: ports(from, Valkey)})
		}
	}
	var clients []networkingv1.NetworkPolicyPeer
	for _, client := range c.Clients {
		clients = append(clients, client.peer())
	}
	admit(Clients, clients...)
	admit(Manager, c.Manager.peer())
	admit(Valkey, c.own())
	admit(Clients, blocks(c.ExternalCIDRs)...)
	if c.TLS {
		admit(Kubelet, blocks(c.KubeletCIDRs)...)
	}
	if c.Egress {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{
			{To: []networkingv1.NetworkPolicyPeer{c.own()}, Ports: ports(Valkey, Valkey)},
			{Ports: resolvers(Valkey, c.DNSPorts)},
		}
	}
	return p
}

// clients lets the clients of this namespace out again where default-deny closes
// it, one policy for each selector. They are made there only: on a pod that is free
// to connect anywhere, a policy for egress would cut off all else.
func (c Cluster) clients() []*networkingv1.NetworkPolicy {
	var all []*networkingv1.NetworkPolicy
	for _, client := range c.Clients {
		if client.CIDR != "" || client.Namespaces != nil || client.Pods == nil {
			continue
		}
		p := policy(c.Namespace, ClientPolicyName(c.Name, len(all)))
		maps.Copy(p.Labels, map[string]string{v1alpha1.LabelInstance: c.Name})
		p.Spec.PodSelector = *client.Pods
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
		p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{
			{To: []networkingv1.NetworkPolicyPeer{c.own()}, Ports: ports(Clients, Valkey)},
			{Ports: resolvers(Valkey, c.DNSPorts)},
		}
		all = append(all, p)
	}
	return all
}

// deny selects every pod of the namespace and allows nothing.
func (c Cluster) deny() *networkingv1.NetworkPolicy {
	p := policy(c.Namespace, DefaultDenyName)
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if c.Egress {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
	return p
}

func policy(namespace, name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelManagedBy: ManagedBy},
		},
	}
}
