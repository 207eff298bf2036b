package netpol

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// Party is one end of a connection.
type Party string

// The parties of the contract.
const (
	Clients   Party = "clients"
	Valkey    Party = "valkey"
	Manager   Party = "manager"
	APIServer Party = "api-server"
	DNS       Party = "dns"
	Kubelet   Party = "kubelet"
)

// Port is a port of one protocol.
type Port struct {
	Protocol corev1.Protocol
	Number   int32
}

// Connection is one row of the connection matrix.
type Connection struct {
	// Row is its number on the page docs/network.md, which a test compares with
	// Matrix.
	Row      int
	From, To Party
	// Ports at the side of To; empty where only the Kubernetes cluster knows.
	Ports []Port
	// TLSOnly connections exist on clusters with spec.tls alone.
	TLSOnly bool
}

func tcp(number int32) Port { return Port{corev1.ProtocolTCP, number} }

// dnsPort is that of every resolver; answers that don't fit a datagram, and some
// resolvers altogether, use TCP.
const dnsPort int32 = 53

var resolver = []Port{{corev1.ProtocolUDP, dnsPort}, tcp(dnsPort)}

// Matrix lists every connection that exists at run time between parties that a
// NetworkPolicy can tell apart. Policies are made from it.
var Matrix = []Connection{
	{Row: 1, From: Clients, To: Valkey, Ports: []Port{tcp(objects.ClientPort)}},
	{Row: 2, From: Valkey, To: Valkey, Ports: []Port{tcp(objects.BusPort)}},
	{Row: 3, From: Valkey, To: Valkey, Ports: []Port{tcp(objects.ClientPort)}},
	{Row: 4, From: Manager, To: Valkey, Ports: []Port{tcp(objects.ClientPort)}},
	{Row: 5, From: Manager, To: APIServer},
	{Row: 6, From: Manager, To: DNS, Ports: resolver},
	{Row: 6, From: Valkey, To: DNS, Ports: resolver},
	{Row: 7, From: Kubelet, To: Valkey, Ports: []Port{tcp(objects.ClientPort)}, TLSOnly: true},
}

// ports are those on which a party may connect to another, in the order of their
// numbers, as the pages and the seed of these policies have them.
func ports(from, to Party) []networkingv1.NetworkPolicyPort {
	var all []Port
	for _, c := range Matrix {
		if c.From == from && c.To == to {
			all = append(all, c.Ports...)
		}
	}
	return rules(all)
}

// resolvers are the ports on which a party may ask for names: those of the matrix
// and more. Network plugins apply policies behind the Service of the resolver, whose
// pods may listen on another port, as 5353 on OpenShift.
func resolvers(from Party, more []int32) []networkingv1.NetworkPolicyPort {
	out := ports(from, DNS)
	var all []Port
	for _, number := range more {
		if number != dnsPort {
			all = append(all, Port{corev1.ProtocolUDP, number}, tcp(number))
		}
	}
	return append(out, rules(all)...)
}

func rules(all []Port) []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for _, p := range sorted(all) {
		out = append(out, networkingv1.NetworkPolicyPort{Protocol: ptr.To(p.Protocol), Port: ptr.To(intstr.FromInt32(p.Number))})
	}
	return out
}
