// Package layout holds every name and address of the local cluster, so that
// nothing else in the program writes one down.
package layout

import (
	"fmt"
	"net/netip"
)

const (
	// Name prefixes what the program creates on the machine: state, log and
	// cache directories, cgroups.
	Name = "kubectl-valkey"

	// Bridge is the host's end of the network that joins the nodes. The host
	// holds HostIP on it and stays outside of the Kubernetes network.
	Bridge = "kv-br0"
	// HostIP is where the nodes and the host reach the API server.
	HostIP = "172.30.7.1"
	// HostCIDR is HostIP with the length of the node network.
	HostCIDR = "172.30.7.1/24"
	// APIPort is the API server's port on HostIP.
	APIPort = 6443
	// EtcdURL is where etcd listens for the API server.
	EtcdURL = "http://127.0.0.1:22379"
	// EtcdPeerURL is where it would listen for other members.
	EtcdPeerURL = "http://127.0.0.1:22380"

	// PodCIDR covers the pods of all nodes; each node owns a /24 of it.
	PodCIDR = "10.244.0.0/16"
	// ServiceCIDR is the range of cluster IPs.
	ServiceCIDR = "10.96.0.0/16"
	// KubernetesServiceIP is the first address of ServiceCIDR: the API server
	// as pods see it.
	KubernetesServiceIP = "10.96.0.1"
	// DNSServiceIP is the cluster IP of kube-dns.
	DNSServiceIP = "10.96.0.10"
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain = "cluster.local"

	// PauseImage is the sandbox image of every pod.
	PauseImage = "localhost/kubectl-valkey/pause:1"
	// CoreDNSImage is the image of the cluster's DNS server.
	CoreDNSImage = "localhost/kubectl-valkey/coredns:1"

	// HostGroup is the cgroup of the control plane and of a running `up`.
	HostGroup = Name + "/host"
)

// Node is one node of the cluster: its name and everything that follows from it.
type Node struct {
	Name  string
	Zone  string
	Index int
}

// Nodes are the three nodes, one in each zone.
func Nodes() []Node {
	return []Node{
		{Name: "node1", Zone: "a", Index: 1},
		{Name: "node2", Zone: "b", Index: 2},
		{Name: "node3", Zone: "c", Index: 3},
	}
}

// NodeNamed finds a node by its name.
func NodeNamed(name string) (Node, error) {
	for _, n := range Nodes() {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("no node is called %q; the nodes are node1, node2 and node3", name)
}

// IP is the node's address on the node network: 172.30.7.11 for node1.
func (n Node) IP() string {
	return netip.AddrFrom4([4]byte{172, 30, 7, byte(10 + n.Index)}).String()
}

// PodCIDR is the node's own part of the pod network.
func (n Node) PodCIDR() string {
	return fmt.Sprintf("10.244.%d.0/24", n.Index)
}

// Veth is the host's end of the node's cable. Cutting it is a partition.
func (n Node) Veth() string { return "kv-" + n.Name }

// Group is the node's cgroup; pods live in its kubepods child.
func (n Node) Group() string { return Name + "/" + n.Name }

// SystemGroup holds the node's own processes: init, containerd, kubelet. They
// are kept out of Group itself because cgroup v2 allows processes in leaves only.
func (n Node) SystemGroup() string { return n.Group() + "/system" }

// APIServerURL is the address in every kubeconfig.
func APIServerURL() string { return fmt.Sprintf("https://%s:%d", HostIP, APIPort) }
