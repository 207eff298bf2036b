package endpoints

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// Address is a host with a port.
type Address struct {
	Host string `json:"host"`
	Port int32  `json:"port"`
}

// String writes host:port, an IPv6 address in brackets.
func (a Address) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port))) }

// Node is how one node is reached.
type Node struct {
	Name  string `json:"name"`
	Shard int32  `json:"shard"`
	Index int32  `json:"index"`
	Role  string `json:"role,omitempty"`
	// Inside is where clients in Kubernetes reach it.
	Inside Address `json:"inside"`
	// Outside is where clients elsewhere do; unset while there is no such way. The host
	// is empty when it is any machine of Kubernetes.
	Outside *Address `json:"outside,omitempty"`
	// Pending says what the way from outside waits for.
	Pending string `json:"pending,omitempty"`
	// Announced is what the cluster tells clients now.
	Announced Address `json:"announced"`
	// Probe is the answer to --probe: reachable, or why not.
	Probe string `json:"probe,omitempty"`
}

// Record is a DNS record that the user has to have.
type Record struct {
	Name string `json:"name"`
	// Targets are addresses or names; empty when they are not known yet.
	Targets []string `json:"targets,omitempty"`
	// Means says what the targets have to be when they can't be listed.
	Means string `json:"means,omitempty"`
}

// Report is what the command prints as JSON or YAML. The form is stable.
type Report struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	TLS       bool   `json:"tls"`
	// Service is the address for clients in Kubernetes to start at.
	Service Address `json:"service"`
	// External is whether external access is on, ServiceType how.
	External    bool               `json:"external"`
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`
	// Directed is whether every node sends clients to the outside names now.
	Directed bool `json:"directed"`
	// Message is what the manager says of external access.
	Message string   `json:"message,omitempty"`
	Nodes   []Node   `json:"nodes"`
	Records []Record `json:"records,omitempty"`
	// SecretRef is the Secret whose ca.crt clients have to trust.
	SecretRef string `json:"secretRef,omitempty"`

	// gateway is whether there is one, shards are those of Records.
	gateway bool
	shards  []int32
}

// anyMachine stands for the address of any Kubernetes node.
const anyMachine = "<node-address>"

// build reads everything from the custom resources.
func build(c *v1alpha1.ValkeyCluster, nodes []v1alpha1.ValkeyNode, host string) Report {
	r := Report{
		Namespace: c.Namespace, Name: c.Name, TLS: c.Spec.TLS != nil, External: objects.ExternalEnabled(c),
		Service: Address{objects.ServiceDNSName(c.Name, c.Namespace, domainOf(c)), objects.ClientPort},
		Nodes:   []Node{},
	}
	if c.Spec.TLS != nil {
		r.SecretRef = c.Spec.TLS.SecretRef
	}
	if r.External {
		r.ServiceType = objects.ExternalServiceType(c.Spec.ExternalAccess)
		r.gateway = c.Spec.ExternalAccess.Gateway != nil
	}
	if cond := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionExternalAccessReady); cond != nil {
		r.Message = cond.Message
	}
	r.Directed = len(nodes) > 0
	for i := range nodes {
		n := r.node(c, &nodes[i], host)
		r.Directed = r.Directed && announcement(&nodes[i]).ClientPort != 0
		r.Nodes = append(r.Nodes, n)
	}
	slices.SortFunc(r.Nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Name, b.Name))
	})
	r.Records, r.shards = records(c)
	return r
}

// domainOf is the cluster domain, as the manager wrote it into the status.
func domainOf(c *v1alpha1.ValkeyCluster) string {
	host, _, err := net.SplitHostPort(c.Status.Endpoint)
	if _, domain, ok := strings.Cut(host, ".svc."); err == nil && ok {
		return domain
	}
	return "cluster.local"
}

func announcement(n *v1alpha1.ValkeyNode) v1alpha1.Announcement {
	if n.Status.Applied != nil && n.Status.Applied.Announcement != nil {
		return *n.Status.Applied.Announcement
	}
	return v1alpha1.Announcement{}
}

func (r Report) node(c *v1alpha1.ValkeyCluster, n *v1alpha1.ValkeyNode, host string) Node {
	inside := Address{n.Status.PodIP, objects.ClientPort}
	if r.TLS || inside.Host == "" {
		inside.Host = objects.PodDNSName(n.Name, c.Name, c.Namespace, domainOf(c))
	}
	out := Node{Name: n.Name, Shard: n.Spec.ShardIndex, Index: n.Spec.NodeIndex, Role: n.Status.Role, Inside: inside, Announced: inside}
	if a := announcement(n); a.EndpointType == v1alpha1.EndpointHostname && a.Hostname != "" {
		out.Announced = Address{a.Hostname, cmp.Or(a.ClientPort, objects.ClientPort)}
	}
	if !r.External {
		return out
	}
	out.Outside, out.Pending = outside(c, n, host)
	return out
}

// outside is the way to a node from outside, or what it waits for.
func outside(c *v1alpha1.ValkeyCluster, n *v1alpha1.ValkeyNode, host string) (*Address, string) {
	i := slices.IndexFunc(c.Status.ExternalEndpoints, func(e v1alpha1.ExternalEndpoint) bool { return e.ShardIndex == n.Spec.ShardIndex })
	if i < 0 || n.Spec.NodeIndex < 0 || int(n.Spec.NodeIndex) >= len(c.Status.ExternalEndpoints[i].Ports) {
		return nil, "the manager has not made its Service yet"
	}
	e := c.Status.ExternalEndpoints[i]
	port := e.Ports[n.Spec.NodeIndex]
	if port == 0 {
		return nil, fmt.Sprintf("Service %s has no port for it yet", e.Service)
	}
	kind := objects.ExternalServiceType(c.Spec.ExternalAccess)
	needsAddress := c.Spec.ExternalAccess.Gateway != nil || kind == corev1.ServiceTypeLoadBalancer
	switch {
	case host != "":
		return &Address{host, port}, ""
	case needsAddress && len(e.Addresses) == 0:
		return nil, fmt.Sprintf("Service %s has no address yet", e.Service)
	case e.Hostname != "":
		return &Address{e.Hostname, port}, ""
	case needsAddress:
		return &Address{e.Addresses[0], port}, ""
	case kind == corev1.ServiceTypeClusterIP:
		return &Address{fmt.Sprintf("%s.%s.svc.%s", e.Service, c.Namespace, domainOf(c)), port}, ""
	}
	return &Address{anyMachine, port}, ""
}

// records are the names that have to resolve for clients outside.
func records(c *v1alpha1.ValkeyCluster) (out []Record, shards []int32) {
	if !objects.ExternalEnabled(c) {
		return nil, nil
	}
	for _, e := range c.Status.ExternalEndpoints {
		if e.Hostname == "" {
			continue
		}
		record := Record{Name: e.Hostname, Targets: e.Addresses}
		switch kind := objects.ExternalServiceType(c.Spec.ExternalAccess); {
		case len(e.Addresses) > 0:
		case c.Spec.ExternalAccess.Gateway != nil:
			record.Means = "the address of Gateway " + c.Spec.ExternalAccess.Gateway.GatewayRef.Name
		case kind == corev1.ServiceTypeNodePort:
			record.Means = "machines of Kubernetes"
		case kind == corev1.ServiceTypeLoadBalancer:
			record.Means = "the load balancer, which has no address yet"
		default:
			record.Means = "whatever leads to Service " + e.Service
		}
		out, shards = append(out, record), append(shards, e.ShardIndex)
	}
	return out, shards
}

// start are the addresses for a client to start at: outside, if clients are directed
// there or asked for it.
func (r Report) start(from string) []Address {
	var out []Address
	if from == fromOutside || from == "" && r.Directed {
		for _, n := range r.Nodes {
			if n.Outside != nil {
				out = append(out, *n.Outside)
			}
		}
		return out
	}
	return []Address{r.Service}
}
