package inspect

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// RoleUnknown is the role of a node that has not told its own.
const RoleUnknown = "unknown"

// Node is one server of a cluster: what the manager knows of it, and its pod.
type Node struct {
	// Name of the node and of its pod.
	Name string `json:"name"`
	// Shard that it serves, from 0.
	Shard int32 `json:"shard"`
	// Index within the shard, from 0.
	Index int32 `json:"index"`
	// Role is primary, replica or unknown.
	Role string `json:"role"`
	// Lifecycle is Joining, Active or Leaving.
	Lifecycle string `json:"lifecycle,omitempty"`
	// InSync is whether it holds a full copy of its shard.
	InSync bool `json:"inSync"`
	// LagBytes is how far a replica is behind its primary: 0 for less than 1 MiB,
	// else the step of 1, 4, 16, 64 MiB and so on that it has reached. It is unset
	// where it isn't known.
	LagBytes *int64 `json:"lagBytes,omitempty"`
	// Pod is unset when pods can't be read.
	Pod *PodState `json:"pod,omitempty"`
	// Zone and Host where the pod runs.
	Zone string `json:"zone,omitempty"`
	Host string `json:"host,omitempty"`
	// IP of the pod.
	IP string `json:"ip,omitempty"`
	// NodeID is the server's own ID.
	NodeID string `json:"nodeID,omitempty"`
	// Image that the pod runs.
	Image string `json:"image,omitempty"`
	// Problem says why the node is not as it should be.
	Problem string `json:"problem,omitempty"`
}

// NodeList returns the nodes of a snapshot by shard and index. While ValkeyNodes
// can't be read the pods stand for them, and without those the cluster's status.
func (s *Snapshot) NodeList() []Node {
	if s.Nodes.Err != nil && s.Pods.Err != nil {
		return s.nodesOfStatus()
	}
	pods := map[string]*corev1.Pod{}
	for i := range s.Pods.Items {
		pods[s.Pods.Items[i].Name] = &s.Pods.Items[i]
	}
	var nodes []Node
	for i := range s.Nodes.Items {
		n := &s.Nodes.Items[i]
		nodes = append(nodes, s.node(n, pods[n.Name]))
		delete(pods, n.Name)
	}
	for _, p := range pods {
		nodes = append(nodes, s.nodeOfPod(p))
	}
	slices.SortFunc(nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Name, b.Name))
	})
	return nodes
}

// node is what a ValkeyNode and its pod, if it has one, say together.
func (s *Snapshot) node(n *v1alpha1.ValkeyNode, pod *corev1.Pod) Node {
	node := Node{
		Name: n.Name, Shard: n.Spec.ShardIndex, Index: n.Spec.NodeIndex,
		Role: orElse(n.Status.Role, RoleUnknown), Lifecycle: string(n.Spec.Lifecycle),
		InSync: n.Status.Ready, IP: n.Status.PodIP, NodeID: n.Status.NodeID, Image: n.Spec.Image,
	}
	switch {
	case pod != nil:
		s.addPod(&node, pod)
	case s.Pods.Err == nil:
		node.Pod = &PodState{Phase: phaseMissing, Problem: "it has no pod"}
	}
	if node.Role == string(topology.RoleReplica) && n.Status.Ready {
		node.LagBytes = &n.Status.LagBytes
	}
	node.Problem = problem(n, node)
	if node.Problem == "" && pod != nil && n.Spec.Lifecycle == v1alpha1.LifecycleActive && !n.Status.Ready && node.Pod.Phase == string(corev1.PodRunning) {
		node.Problem = "it holds no full copy of its shard yet"
		if gate(pod) {
			// It was in sync when it was asked last, so what the manager misses is
			// an answer; the role is of that time too.
			node.Role, node.Problem = RoleUnknown, "it does not answer the manager"
		}
	}
	return node
}

// gate is the pod's readiness gate: whether the node holds a full copy, as far as
// was known last.
func gate(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1alpha1.InSyncGate {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// problem prefers what the pod says: it is nearer to the cause.
func problem(n *v1alpha1.ValkeyNode, node Node) string {
	if node.Pod != nil && node.Pod.Problem != "" {
		return node.Pod.Problem
	}
	for _, c := range n.Status.Conditions {
		if c.Status == metav1.ConditionFalse && c.Message != "" {
			return output.Clean(c.Message)
		}
	}
	return ""
}

// nodeOfPod is a node of which only the pod is known.
func (s *Snapshot) nodeOfPod(p *corev1.Pod) Node {
	shard, err := objects.ShardOf(p.Labels)
	if err != nil {
		shard = -1
	}
	node := Node{Name: p.Name, Shard: shard, Role: RoleUnknown}
	for i := range s.Cluster.Status.Shards {
		sh := &s.Cluster.Status.Shards[i]
		switch {
		case sh.Primary == p.Name:
			node.Role = "primary"
		case slices.Contains(sh.Replicas, p.Name):
			node.Role = "replica"
		}
	}
	node.InSync = gate(p)
	s.addPod(&node, p)
	node.Problem = node.Pod.Problem
	if node.Problem == "" && s.Nodes.Err == nil {
		node.Problem = "no ValkeyNode owns this pod"
	}
	return node
}

// nodesOfStatus are the nodes as the cluster's own status lists them.
func (s *Snapshot) nodesOfStatus() []Node {
	var nodes []Node
	for _, shard := range s.Cluster.Status.Shards {
		if shard.Primary != "" {
			nodes = append(nodes, Node{Name: shard.Primary, Shard: shard.Index, Role: "primary"})
		}
		for i, name := range shard.Replicas {
			nodes = append(nodes, Node{Name: name, Shard: shard.Index, Index: int32(i + 1), Role: "replica"})
		}
	}
	return nodes
}

func (s *Snapshot) addPod(node *Node, p *corev1.Pod) {
	state := podState(p, s.Events.Items)
	node.Pod = &state
	node.Host, node.IP = p.Spec.NodeName, orElse(p.Status.PodIP, node.IP)
	node.Zone = orElse(p.Labels[corev1.LabelTopologyZone], s.Zones[p.Spec.NodeName])
	if node.Image == "" && len(p.Spec.Containers) > 0 {
		node.Image = p.Spec.Containers[0].Image
	}
}
