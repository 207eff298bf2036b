package inspect

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Progress is how far the creation of a cluster has come.
type Progress struct {
	State string
	// Nodes that the topology asks for.
	Nodes int
	// Running pods; -1 when pods can't be read.
	Running int
	// Joined nodes, those that belong to their shard; -1 when ValkeyNodes can't
	// be read.
	Joined int
	// Slots assigned, of 16384.
	Slots int
	// Replicas that the topology asks for, and those that hold a full copy; the
	// latter is -1 when it can't be known.
	Replicas, InSync int
	// Waiting says what holds it up, if anything does.
	Waiting string
}

// ProgressOf reads the progress of a snapshot, as it looks now.
func ProgressOf(s *Snapshot, now time.Time) Progress {
	shards, replicas := s.Cluster.Spec.Shards, s.Cluster.Spec.ReplicasPerShard
	if t := s.Cluster.Status.TargetSpec; t != nil {
		shards, replicas = t.Shards, t.ReplicasPerShard
	}
	p := Progress{
		State: string(s.Cluster.Status.State),
		Nodes: int(shards * (replicas + 1)), Replicas: int(shards * replicas),
		Running: -1, Joined: -1, InSync: -1,
	}
	for _, sh := range s.Cluster.Status.Shards {
		p.Slots += int(sh.SlotCount)
	}
	if s.Pods.Err == nil {
		p.Running = 0
		for i := range s.Pods.Items {
			if s.Pods.Items[i].Status.Phase == corev1.PodRunning {
				p.Running++
			}
		}
	}
	if s.Nodes.Err == nil {
		p.Joined, p.InSync = 0, 0
		for i := range s.Nodes.Items {
			n := &s.Nodes.Items[i]
			if n.Spec.Lifecycle == v1alpha1.LifecycleActive {
				p.Joined++
			}
			if n.Status.Ready && n.Status.Role == "replica" {
				p.InSync++
			}
		}
	}
	p.Waiting = waitingFor(s, now)
	return p
}

// waitingFor names what most likely holds a cluster up: what its config, its
// certificate or a pod lacks comes before what the manager is doing.
func waitingFor(s *Snapshot, now time.Time) string {
	if hint := ManagerHint(s.Cluster, now); hint != "" {
		return hint
	}
	for _, t := range []string{v1alpha1.ConditionConfigResolved, v1alpha1.ConditionTLSReady} {
		c := meta.FindStatusCondition(s.Cluster.Status.Conditions, t)
		if c != nil && c.Status == metav1.ConditionFalse && !AtRest(*c) && blocks(s.Cluster, c) {
			return output.Clean(c.Reason + ": " + c.Message)
		}
	}
	var first string
	more := 0
	for _, n := range s.NodeList() {
		switch {
		case n.Pod == nil || n.Pod.Problem == "" || n.Pod.Phase == phaseMissing:
		case first == "":
			first = fmt.Sprintf("%s is %s: %s", n.Name, n.Pod.Phase, n.Pod.Problem)
		default:
			more++
		}
	}
	if more > 0 {
		first += fmt.Sprintf(" (and %d more)", more)
	}
	if first != "" {
		return first
	}
	return output.Clean(NextAction(s.Cluster))
}

// blocks is whether a condition stops the manager. TLSReady is also false while
// nodes are still starting.
func blocks(c *v1alpha1.ValkeyCluster, cond *metav1.Condition) bool {
	return cond.Type == v1alpha1.ConditionConfigResolved || c.Status.State == v1alpha1.StateInvalid
}
