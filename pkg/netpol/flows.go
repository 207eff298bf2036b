package netpol

import "github.com/kubectl-valkey/kubectl-valkey/pkg/objects"

// Source is where a flow begins when policies are put to the test.
type Source string

// The sources of flows.
const (
	// FromClient is a pod of the cluster's namespace that is a client.
	FromClient Source = "client"
	// FromStranger is a pod of the cluster's namespace that is none.
	FromStranger Source = "other pod"
	// FromManager is a pod that is in the manager's place.
	FromManager Source = "manager"
	// FromNeighbour is another pod of the manager's namespace, labelled as a
	// client: what admits it admits by one label only.
	FromNeighbour Source = "other namespace"
	// FromServer is a Valkey pod of the cluster.
	FromServer Source = "valkey pod"
)

// Target is where a flow ends.
type Target string

// The targets of flows.
const (
	ToServer    Target = "valkey pod"
	ToDNS       Target = "cluster DNS"
	ToAPIServer Target = "API server"
)

// Flow is a connection that policies allow or deny.
type Flow struct {
	From Source
	To   Target
	// Port at the target; 0 for DNS, where it is the resolver's.
	Port    int32
	Allowed bool
}

// Flows are what the policies of a cluster allow and deny, as far as it can be
// tried out with a pod here and there.
func (c Cluster) Flows() []Flow {
	client := c.localClient()
	open := client != nil && len(client.Pods.MatchLabels) == 0 && len(client.Pods.MatchExpressions) == 0
	var flows []Flow
	to := func(from Source, port int32, allowed bool) {
		flows = append(flows, Flow{From: from, To: ToServer, Port: port, Allowed: allowed})
	}
	if client != nil {
		to(FromClient, objects.ClientPort, true)
		to(FromClient, objects.BusPort, false)
	}
	to(FromStranger, objects.ClientPort, open)
	to(FromStranger, objects.BusPort, false)
	to(FromManager, objects.ClientPort, true)
	to(FromManager, objects.BusPort, false)
	to(FromNeighbour, objects.BusPort, false)
	if !c.elsewhere() {
		to(FromNeighbour, objects.ClientPort, false)
	}
	to(FromServer, objects.ClientPort, true)
	to(FromServer, objects.BusPort, true)
	flows = append(flows, Flow{From: FromServer, To: ToDNS, Allowed: true})
	if c.Egress {
		flows = append(flows, Flow{From: FromServer, To: ToAPIServer, Port: 443, Allowed: false})
	}
	return flows
}

// localClient is the first client of the cluster's own namespace that pods can be
// made for.
func (c Cluster) localClient() *Client {
	for i, client := range c.Clients {
		if client.CIDR == "" && client.Namespaces == nil && client.Pods != nil && len(client.Pods.MatchExpressions) == 0 {
			return &c.Clients[i]
		}
	}
	return nil
}

// ClientLabels are what a pod needs to count as a client; nil when no pod of the
// cluster's namespace can be made one.
func (c Cluster) ClientLabels() map[string]string {
	if client := c.localClient(); client != nil {
		return client.Pods.MatchLabels
	}
	return nil
}

// elsewhere is whether pods of other namespaces, or addresses, are admitted: then a
// pod of the manager's namespace may be one of them.
func (c Cluster) elsewhere() bool {
	for _, client := range c.Clients {
		if client.CIDR != "" || client.Namespaces != nil {
			return true
		}
	}
	return len(c.ExternalCIDRs)+len(c.KubeletCIDRs) > 0
}
