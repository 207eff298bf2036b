package plan

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

var errUnanswered = errors.New("it did not answer the manager's last question")

// look is what is known of a cluster as of the manager's last look.
type look struct {
	snapshot *inspect.Snapshot
	wish     *wish
	pods     map[string]*corev1.Pod
	problems map[string]string
	now      time.Time
	// owner is the ID of the node that owns each shard's slots; the node may be dead.
	owner map[int32]string
	// owned are the slots of each owner.
	owned map[string]slots.Set
}

// stateOf puts what the manager reported into the words of the planner: who owns
// what and who follows whom stands in status.shards, which names only nodes that
// answered. That the servers know and trust each other is assumed.
func stateOf(s *inspect.Snapshot, w *wish, now time.Time) plan.State {
	l := &look{
		snapshot: s, wish: w, now: now, pods: map[string]*corev1.Pod{}, problems: map[string]string{},
		owner: map[int32]string{}, owned: map[string]slots.Set{},
	}
	for i := range s.Pods.Items {
		l.pods[s.Pods.Items[i].Name] = &s.Pods.Items[i]
	}
	for _, n := range s.NodeList() {
		l.problems[n.Name] = n.Problem
	}
	_, accepted := request.Open(s.Cluster, request.Acknowledge)
	state := plan.State{
		Cluster: s.Cluster.Name, UID: string(s.Cluster.UID), Recorded: map[int32]slots.Set{}, LossAccepted: accepted,
		Creating: plan.Creating(s.Cluster), Target: topologyOf(w.cluster.Spec),
	}
	for _, shard := range s.Cluster.Status.Shards {
		if set, err := slots.ParseSet(shard.Slots); err == nil {
			state.Recorded[shard.Index] = set
			l.findOwner(shard, set)
		}
	}
	for i := range s.Nodes.Items {
		state.Nodes = append(state.Nodes, l.node(&s.Nodes.Items[i]))
	}
	for i := range state.Nodes {
		if reply, ok := l.reply(state.Nodes, i); ok {
			state.Replies = append(state.Replies, reply)
		}
	}
	return state
}

func topologyOf(spec v1alpha1.ValkeyClusterSpec) v1alpha1.TargetTopology {
	return v1alpha1.TargetTopology{Shards: spec.Shards, ReplicasPerShard: spec.ReplicasPerShard}
}

// findOwner notes who owns a shard's slots: the primary that the manager saw, else
// the node that was it last.
func (l *look) findOwner(shard v1alpha1.ShardStatus, set slots.Set) {
	if set.Empty() {
		return
	}
	for i := range l.snapshot.Nodes.Items {
		n := &l.snapshot.Nodes.Items[i]
		last := shard.Primary == "" && n.Spec.ShardIndex == shard.Index && n.Status.Role == string(topology.RolePrimary) &&
			n.Spec.Lifecycle != v1alpha1.LifecycleJoining
		if n.Status.NodeID != "" && (n.Name == shard.Primary || last) {
			l.owner[shard.Index], l.owned[n.Status.NodeID] = n.Status.NodeID, set
			return
		}
	}
}

// node is one ValkeyNode with what is known of its pod.
func (l *look) node(n *v1alpha1.ValkeyNode) plan.Node {
	pod := l.pods[n.Name]
	out := plan.Node{
		Name: n.Name, Position: plan.Position{Shard: n.Spec.ShardIndex, Index: n.Spec.NodeIndex},
		Lifecycle: n.Spec.Lifecycle, Pod: l.phase(n, pod), Terminating: n.DeletionTimestamp != nil,
		PodIP: n.Status.PodIP, InSync: n.Status.Ready, NodeID: n.Status.NodeID, Role: topology.Role(n.Status.Role), Zone: l.zone(pod),
		Age: l.now.Sub(n.CreationTimestamp.Time), Outdated: l.wish.difference(n).Replace, Detail: l.problems[n.Name],
	}
	if pod != nil && pod.DeletionTimestamp != nil {
		out.Terminating = true
	}
	if out.Terminating {
		out.TerminatingFor = time.Minute // the moment in which the manager hands over is past
	}
	// The manager says when it can't be sure that a pod that is gone is dead.
	out.HostGone = out.Pod == plan.PodGone && inspect.AwaitedCopies(l.snapshot.Cluster) == ""
	return out
}

func (l *look) zone(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.Labels[corev1.LabelTopologyZone]
}

// phase is that of a node's pod. While pods can't be read the node's address tells
// that it runs.
func (l *look) phase(n *v1alpha1.ValkeyNode, pod *corev1.Pod) plan.PodPhase {
	switch {
	case l.snapshot.Pods.Err == nil:
		return plan.PhaseOf(pod, objects.PodWasCreated(n))
	case n.Status.PodIP != "":
		return plan.PodRunning
	}
	return plan.PodPending
}

// seen reports whether a node answered at the manager's last look. A node that owns
// no slots and follows nobody is in no shard's list.
func (l *look) seen(n plan.Node) bool {
	for _, shard := range l.snapshot.Cluster.Status.Shards {
		if shard.Primary == n.Name || slices.Contains(shard.Replicas, n.Name) {
			return true
		}
	}
	return l.owned[n.NodeID].Empty() && n.Lifecycle == v1alpha1.LifecycleJoining
}

// reply is what a node would have said at the manager's last look; ok is false for
// one that can't say anything.
func (l *look) reply(nodes []plan.Node, i int) (topology.Reply, bool) {
	n := nodes[i]
	if n.NodeID == "" || n.Pod != plan.PodRunning || n.Dead() {
		return topology.Reply{}, false
	}
	r := topology.Reply{Node: n.Name, PodIP: n.PodIP, ID: n.NodeID, Info: topology.ClusterInfo{State: topology.StateOK}}
	if !l.seen(n) {
		r.Err = errUnanswered
		return r, true
	}
	self := l.member(n)
	self.Myself = true
	r.Members = append(r.Members, self)
	for _, other := range nodes {
		if other.Name != n.Name && other.NodeID != "" && l.joined(n) && l.joined(other) {
			r.Members = append(r.Members, l.member(other))
		}
	}
	r.Replication = topology.Replication{Role: self.Role, LinkUp: n.InSync, SyncInProgress: self.Role == topology.RoleReplica && !n.InSync}
	return r, true
}

// joined reports whether the other servers know a node.
func (l *look) joined(n plan.Node) bool {
	return n.Lifecycle != v1alpha1.LifecycleJoining || l.role(n) == topology.RoleReplica || !l.owned[n.NodeID].Empty()
}

// role of a node, as the servers see it.
func (l *look) role(n plan.Node) topology.Role {
	owner := l.owner[n.Position.Shard]
	if owner == "" || owner == n.NodeID {
		return topology.RolePrimary
	}
	for _, shard := range l.snapshot.Cluster.Status.Shards {
		if slices.Contains(shard.Replicas, n.Name) {
			return topology.RoleReplica
		}
	}
	if n.Lifecycle == v1alpha1.LifecycleJoining {
		return topology.RolePrimary
	}
	return topology.RoleReplica
}

// member is the row of a node in the others' tables.
func (l *look) member(n plan.Node) topology.Member {
	m := topology.Member{
		ID: n.NodeID, IP: n.PodIP, Port: int(objects.ClientPort), BusPort: int(objects.BusPort), Role: l.role(n), LinkUp: !n.Dead(),
		Failed: n.Dead(), ConfigEpoch: uint64(n.Position.Shard) + 1, Slots: l.owned[n.NodeID],
	}
	if m.Role == topology.RoleReplica {
		m.PrimaryID = l.owner[n.Position.Shard]
	}
	return m
}
