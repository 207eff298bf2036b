package netpol

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// ManagerPolicyName of the policy for the manager's pods.
const ManagerPolicyName = "valkey-operator"

// Endpoint is where an API server answers; an empty CIDR is any address.
type Endpoint struct {
	CIDR string
	Port int32
}

// AnyAPIServer is for when the addresses are not known: the usual ports, anywhere.
func AnyAPIServer() []Endpoint { return []Endpoint{{Port: 443}, {Port: 6443}} }

// ManagerPolicy is what the policy for the manager depends on.
type ManagerPolicy struct {
	ManagerAt
	// APIServer are its endpoints, as Service and as what is behind that: some
	// network plugins look at an address before it is translated, some after.
	APIServer []Endpoint
	// ClusterNamespaces are those that may hold clusters; nil means all.
	ClusterNamespaces *metav1.LabelSelector
	// DNSPorts are those of resolvers beside 53.
	DNSPorts []int32
}

// Policy denies all ingress, since the manager listens on nothing, and allows
// egress to the API server, the resolvers, and port 6379 of Valkey pods.
func (m ManagerPolicy) Policy() *networkingv1.NetworkPolicy {
	p := policy(m.Namespace, ManagerPolicyName)
	p.Spec.PodSelector = metav1.LabelSelector{MatchLabels: m.Labels}
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	where := m.ClusterNamespaces
	if where == nil {
		where = &metav1.LabelSelector{}
	}
	servers := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: where,
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelName: v1alpha1.ApplicationName}},
	}
	p.Spec.Egress = append(apiServerRules(m.APIServer),
		networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{servers}, Ports: ports(Manager, Valkey)},
		networkingv1.NetworkPolicyEgressRule{Ports: resolvers(Manager, m.DNSPorts)},
	)
	return p
}

// apiServerRules makes one rule for each port, in the order of the endpoints.
func apiServerRules(endpoints []Endpoint) []networkingv1.NetworkPolicyEgressRule {
	if len(endpoints) == 0 {
		endpoints = AnyAPIServer()
	}
	var rules []networkingv1.NetworkPolicyEgressRule
	at := map[int32]int{}
	for _, e := range endpoints {
		i, known := at[e.Port]
		if !known {
			i = len(rules)
			at[e.Port] = i
			rules = append(rules, networkingv1.NetworkPolicyEgressRule{Ports: []networkingv1.NetworkPolicyPort{
				{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(e.Port))},
			}})
		}
		if e.CIDR != "" {
			rules[i].To = append(rules[i].To, blocks([]string{e.CIDR})...)
		}
	}
	return rules
}
