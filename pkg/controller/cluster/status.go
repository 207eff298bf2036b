package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// writeTarget writes down what the creation of a cluster works towards, if that is
// not done yet. It reports false if the cluster is no longer what was observed.
func (r *Reconciler) writeTarget(ctx context.Context, o *observation) (bool, error) {
	if !o.creating || o.cluster.Status.TargetSpec != nil && *o.cluster.Status.TargetSpec == o.target {
		return true, nil
	}
	patch := client.MergeFromWithOptions(o.cluster.DeepCopy(), client.MergeFromWithOptimisticLock{})
	target := o.target
	o.cluster.Status.State, o.cluster.Status.TargetSpec = v1alpha1.StateCreating, &target
	err := r.Client.Status().Patch(ctx, o.cluster, patch)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write down the target: %w", err)
	}
	return true, nil
}

// writeStatus writes the status if it differs from what is there, and publishes
// an event for what changed. It reports whether it was outrun: the cache that the
// pass started from was old, or somebody else wrote.
func (r *Reconciler) writeStatus(ctx context.Context, o *observation, out outcome) (bool, error) {
	next := r.nextStatus(o, out)
	if equality.Semantic.DeepEqual(o.cluster.Status, next) || r.inVain(ctx, o, o.cluster, next) {
		return false, nil
	}
	before := o.cluster.DeepCopy()
	o.cluster.Status = next
	// The lock keeps a pass that started from an old cache from saying everything a
	// second time, in the status and in events.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := r.Client.Status().Patch(ctx, o.cluster, patch)
	if apierrors.IsConflict(err) {
		return true, nil
	}
	if err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("update status: %w", err))
	}
	r.pruned.written(o, o.cluster, next)
	r.announce(o, before.Status, next)
	return false, nil
}

// inVain reports whether a status needs not be written, as the API server keeps no
// more of it than there is. That is said once for each kind; which fields it is that
// the CRD lacks is in the warnings of the API server, which are logged too.
func (r *Reconciler) inVain(ctx context.Context, o *observation, obj client.Object, wish any) bool {
	again, first := r.pruned.again(o, obj, wish)
	if first {
		log.FromContext(ctx).Info("the installed CRD drops fields that this version of the manager writes; apply the CRDs of this version",
			"kind", objects.KindOf(obj), "object", obj.GetName())
	}
	return again
}

// nextStatus computes the whole status from what was seen and done.
func (r *Reconciler) nextStatus(o *observation, out outcome) v1alpha1.ValkeyClusterStatus {
	s := *o.cluster.Status.DeepCopy()
	s.ObservedGeneration = o.cluster.Generation
	s.Nodes = nil
	for _, n := range o.nodes {
		s.Nodes = append(s.Nodes, n.Name)
	}
	if o.anyReachable() {
		s.Shards = withRecords(shardStatus(o), plan.Records(o.state()))
	}
	s.ShardCount = 0
	for _, shard := range s.Shards {
		if shard.SlotCount > 0 {
			s.ShardCount++
		}
	}
	inSync, wished := o.syncCount()
	s.Ready = fmt.Sprintf("%d/%d", inSync, wished)
	s.ReadyShards = o.readyShards()
	s.Endpoint = fmt.Sprintf("%s:%d", objects.ServiceDNSName(o.cluster.Name, o.cluster.Namespace, r.Reach.ClusterDomain), objects.ClientPort)
	s.State, s.Message = nextState(o, out)
	if out.decision.Complete && out.blocked == nil && out.failed == nil {
		s.Topology = &v1alpha1.TargetTopology{Shards: o.target.Shards, ReplicasPerShard: o.target.ReplicasPerShard}
	}
	s.TargetSpec = nil
	if o.creating && s.State != v1alpha1.StateActive {
		s.TargetSpec = &v1alpha1.TargetTopology{Shards: o.target.Shards, ReplicasPerShard: o.target.ReplicasPerShard}
	}
	s.Requests = answers(o, out)
	setConditions(&s, o, out)
	setOutside(&s, o, out)
	dataLoss(&s, o, out)
	return s
}

// withRecords writes down what each shard owns, also by nodes that are dead or out
// of reach: it has to be known what was lost.
func withRecords(shards []v1alpha1.ShardStatus, records map[int32]slots.Set) []v1alpha1.ShardStatus {
	for index, owned := range records {
		i := slices.IndexFunc(shards, func(s v1alpha1.ShardStatus) bool { return s.Index == index })
		if i < 0 {
			shards = append(shards, v1alpha1.ShardStatus{Index: index})
			i = len(shards) - 1
		}
		shards[i].Slots, shards[i].SlotCount = owned.String(), int32(owned.Len())
	}
	slices.SortFunc(shards, func(a, b v1alpha1.ShardStatus) int { return int(a.Index - b.Index) })
	return shards
}

// nextState returns state and message. A cluster becomes Active when it was
// complete once and stays so; only an unusable TLS Secret interrupts it.
func nextState(o *observation, out outcome) (v1alpha1.ClusterState, string) {
	if o.tls.invalid != nil {
		return v1alpha1.StateInvalid, o.tls.invalid.message
	}
	state := v1alpha1.StateActive
	if o.creating && (!out.decision.Complete || out.blocked != nil || out.failed != nil) {
		state = v1alpha1.StateCreating
	}
	return state, out.summary()
}

// summary says in a sentence what is going on, empty when nothing is.
func (out outcome) summary() string {
	switch {
	case out.blocked != nil:
		return out.blocked.message
	case out.failed != nil:
		return out.failed.Error()
	case out.decision.Waiting != "":
		return "waiting: " + out.decision.Waiting
	case len(out.decision.Actions) > 0:
		return describe(out.decision.Actions)
	}
	return ""
}

// describe puts a batch of actions of one kind into a sentence.
func describe(actions []plan.Action) string {
	text := actions[0].Reason
	if n := len(actions) - 1; n > 0 {
		text = fmt.Sprintf("%s (and %d more of this kind)", text, n)
	}
	return text
}

func (o *observation) anyReachable() bool {
	for _, v := range o.view.Nodes {
		if v.Reachable {
			return true
		}
	}
	return false
}

// shardStatus lists the shards as the servers see them.
func shardStatus(o *observation) []v1alpha1.ShardStatus {
	byIndex := map[int32]*v1alpha1.ShardStatus{}
	for _, n := range o.planNodes() {
		shard := byIndex[n.Position.Shard]
		if shard == nil {
			shard = &v1alpha1.ShardStatus{Index: n.Position.Shard}
			byIndex[n.Position.Shard] = shard
		}
		v, ok := o.view.Nodes[n.Name]
		if !ok || !v.Reachable {
			continue
		}
		switch {
		case v.Role == topology.RolePrimary && !v.Slots.Empty():
			shard.Primary, shard.Slots, shard.SlotCount = n.Name, v.Slots.String(), int32(v.Slots.Len())
		case v.Role == topology.RoleReplica:
			shard.Replicas = append(shard.Replicas, n.Name)
		}
	}
	out := make([]v1alpha1.ShardStatus, 0, len(byIndex))
	for _, shard := range byIndex {
		slices.Sort(shard.Replicas)
		out = append(out, *shard)
	}
	slices.SortFunc(out, func(a, b v1alpha1.ShardStatus) int { return int(a.Index - b.Index) })
	return out
}

// copyOf reports whether a node is a full, living copy of its shard's data.
func (o *observation) copyOf(n plan.Node) bool {
	v, ok := o.view.Nodes[n.Name]
	return ok && v.Reachable && !n.Dead() && (n.InSync || o.changingSides(n, v))
}

// handover is how long the nodes of a shard may take after a failover until each
// follows the new primary.
const handover = 10 * time.Second

// changingSides reports whether a node only waits for its link to the primary that
// has just taken over: it has all data, so nothing is amiss. A node that copies
// everything anew is no copy meanwhile.
func (o *observation) changingSides(n plan.Node, v *topology.NodeView) bool {
	ago, asked := o.failovers[n.Position.Shard]
	return asked && ago < handover && n.Lifecycle == v1alpha1.LifecycleActive && !v.Replication.SyncInProgress
}

func (o *observation) wished(p plan.Position) bool {
	return p.Shard < o.target.Shards && p.Index <= o.target.ReplicasPerShard
}

// syncCount counts the wished positions and those with a copy in sync.
func (o *observation) syncCount() (inSync, wished int) {
	filled := map[plan.Position]bool{}
	for _, n := range o.planNodes() {
		if o.copyOf(n) && o.wished(n.Position) {
			filled[n.Position] = true
		}
	}
	return len(filled), int(o.target.Shards * (o.target.ReplicasPerShard + 1))
}

// readyShards counts the shards with a primary and all replicas in sync.
func (o *observation) readyShards() int32 {
	copies := map[int32]int32{}
	primary := map[int32]bool{}
	for _, n := range o.planNodes() {
		if !o.copyOf(n) || !o.wished(n.Position) {
			continue
		}
		copies[n.Position.Shard]++
		if v := o.view.Nodes[n.Name]; v.Role == topology.RolePrimary && !v.Slots.Empty() {
			primary[n.Position.Shard] = true
		}
	}
	ready := int32(0)
	for shard, n := range copies {
		if primary[shard] && n > o.target.ReplicasPerShard {
			ready++
		}
	}
	return ready
}

// notInSync lists the wished nodes that hold no full copy, with why. Lost leaves
// out those that are on their way in: a cluster that grows is not degraded.
func (o *observation) notInSync(lost bool) []string {
	var out []string
	for _, n := range o.without(lost) {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s: %s", n.Name, o.trouble(n)), ": "))
	}
	return out
}

// had reports whether a position was filled when the cluster was last complete.
func (o *observation) had(p plan.Position) bool {
	t := o.cluster.Status.Topology
	return t != nil && p.Shard < t.Shards && p.Index <= t.ReplicasPerShard
}

// missing counts the wished positions that were filled once and have no copy now.
func (o *observation) missing() int {
	n := 0
	for p := range o.positions() {
		if o.had(p) && !o.filled(p) {
			n++
		}
	}
	return n
}

// positions yields every wished position.
func (o *observation) positions() iter.Seq[plan.Position] {
	return func(yield func(plan.Position) bool) {
		for shard := range o.target.Shards {
			for index := range o.target.ReplicasPerShard + 1 {
				if !yield(plan.Position{Shard: shard, Index: index}) {
					return
				}
			}
		}
	}
}

func (o *observation) filled(p plan.Position) bool {
	return slices.ContainsFunc(o.planNodes(), func(n plan.Node) bool { return n.Position == p && o.copyOf(n) })
}

// without returns the nodes of wished positions that have no full copy.
func (o *observation) without(lost bool) []plan.Node {
	nodes := o.planNodes()
	good := map[plan.Position]bool{}
	for _, n := range nodes {
		if o.copyOf(n) {
			good[n.Position] = true
		}
	}
	return slices.DeleteFunc(nodes, func(n plan.Node) bool {
		return good[n.Position] || !o.wished(n.Position) || lost && !o.had(n.Position)
	})
}

// trouble says why a node is not a full copy.
func (o *observation) trouble(n plan.Node) string {
	v, asked := o.view.Nodes[n.Name]
	switch {
	case n.Pod == plan.PodGone:
		return "its pod is gone"
	case n.Pod == plan.PodTerminated:
		return n.Detail
	case n.Terminating:
		return "it is being deleted"
	case n.Pod == plan.PodNone || n.Pod == plan.PodPending:
		return strings.TrimSuffix("its pod is pending: "+n.Detail, ": ")
	case asked && !v.Reachable:
		return "it does not answer: " + v.Err.Error()
	}
	return "it is not in sync"
}

// uncovered returns the slots that no reachable node serves.
func (o *observation) uncovered() slots.Set { return o.view.UncoveredSlots() }

// asConflict returns the conflict that an error carries.
func asConflict(err error) (string, bool) {
	var conflict *conflictError
	if errors.As(err, &conflict) {
		return conflict.Message, true
	}
	return "", false
}
