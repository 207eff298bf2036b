package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// execute carries out one action.
func (r *Reconciler) execute(ctx context.Context, o *observation, a plan.Action) error {
	switch a.Kind {
	case plan.CreateNode:
		return r.createNode(ctx, o, a)
	case plan.DeleteNode:
		return r.deleteNode(ctx, o, a)
	case plan.Activate:
		return r.setLifecycle(ctx, o, a.Node, v1alpha1.LifecycleActive)
	case plan.Leave:
		return r.setLifecycle(ctx, o, a.Node, v1alpha1.LifecycleLeaving)
	case plan.Failover:
		r.moments.mark(client.ObjectKeyFromObject(o.cluster), failoverOf(a.Position.Shard), time.Now())
		if err := r.leadsToHeir(ctx, o, a); err != nil {
			return err
		}
	}
	return r.command(ctx, o, a)
}

// command sends an action's command to its node.
func (r *Reconciler) command(ctx context.Context, o *observation, a plan.Action) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	node, err := r.dial(ctx, o, a.Node)
	if err != nil {
		return err
	}
	defer node.Close()
	if a.Kind == plan.MoveSlots {
		target, err := r.dial(ctx, o, a.Target)
		if err != nil {
			return err
		}
		defer target.Close()
		return moveSlots(ctx, node, target, a)
	}
	return send(ctx, node, a)
}

func send(ctx context.Context, node valkey.Node, a plan.Action) error {
	switch a.Kind {
	case plan.SetConfigEpoch:
		return node.SetConfigEpoch(ctx, a.Epoch)
	case plan.AssignSlots:
		return node.AddSlots(ctx, a.Slots)
	case plan.Introduce:
		return node.Meet(ctx, a.TargetIP)
	case plan.Replicate:
		return node.Replicate(ctx, a.TargetID)
	case plan.Forget:
		return node.Forget(ctx, a.TargetID)
	case plan.Failover:
		return node.Failover(ctx, valkey.FailoverMode(a.Mode))
	case plan.ReplaceLost:
		return replaceLost(ctx, node, a.Slots)
	}
	return fmt.Errorf("no command for action %s", a.Kind)
}

// errUnderWay says that an earlier pass started what an action asks for.
var errUnderWay = errors.New("under way")

// replaceLost gives slots that nobody has to a node. The node itself may still take
// a member for their owner that claims them no more, which it has to forget first.
func replaceLost(ctx context.Context, node valkey.Node, lost slots.Set) error {
	seen, err := node.Observe(ctx)
	if err != nil {
		return err
	}
	var others, own slots.Set
	for _, m := range seen.Members {
		if m.Myself {
			own = m.Slots
		} else {
			others = others.Union(m.Slots)
		}
	}
	if err := node.DeleteSlots(ctx, lost.Intersect(others)); err != nil {
		return err
	}
	if err := node.AddSlots(ctx, lost.Minus(own)); err != nil {
		return err
	}
	// Else a former owner that comes back after all takes the slots again.
	return node.BumpEpoch(ctx)
}

// moveSlots starts a migration unless the source or the target is still busy with
// one: the server refuses a slot that is already on its way, and one that is source
// and target at once may crash.
func moveSlots(ctx context.Context, source, target valkey.Node, a plan.Action) error {
	theirs, err := target.SlotMigrations(ctx)
	if err != nil {
		return err
	}
	jobs, err := source.SlotMigrations(ctx)
	if err != nil {
		return err
	}
	giving := func(job topology.Migration) bool { return job.Export && !job.Done() }
	busy := func(job topology.Migration) bool { return !job.Done() }
	if slices.ContainsFunc(theirs, giving) || slices.ContainsFunc(jobs, busy) {
		return errUnderWay
	}
	var exports []valkey.Export
	for _, part := range a.Slots.Parts(a.Jobs) {
		exports = append(exports, valkey.Export{Slots: part, TargetID: a.TargetID})
	}
	return source.MigrateSlots(ctx, exports...)
}

// createNode makes the ValkeyNode of an action. Its name follows from its place,
// so a second attempt finds the first one's object.
func (r *Reconciler) createNode(ctx context.Context, o *observation, a plan.Action) error {
	in := o.nodeInput()
	in.Name, in.JoinType, in.PreferredZone = a.Node, a.JoinType, a.Zone
	in.ShardIndex, in.NodeIndex = a.Position.Shard, a.Position.Index
	node := objects.Node(o.cluster, in)
	err := gone(r.Client.Create(ctx, node))
	if apierrors.IsAlreadyExists(err) {
		live := &v1alpha1.ValkeyNode{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(node), live); err != nil {
			return client.IgnoreNotFound(err)
		}
		return owned(o.cluster, live)
	}
	if err == nil && a.Predecessor != "" {
		r.normal(o, v1alpha1.ReasonNodeReplaced, "%s: node %s takes its place", a.Reason, a.Node)
	}
	return err
}

func (r *Reconciler) deleteNode(ctx context.Context, o *observation, a plan.Action) error {
	node := &v1alpha1.ValkeyNode{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster.Namespace, Name: a.Node}}
	return client.IgnoreNotFound(r.Client.Delete(ctx, node, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func (r *Reconciler) setLifecycle(ctx context.Context, o *observation, name string, to v1alpha1.Lifecycle) error {
	for i := range o.nodes {
		if o.nodes[i].Name != name {
			continue
		}
		patch := client.MergeFrom(o.nodes[i].DeepCopy())
		o.nodes[i].Spec.Lifecycle = to
		return r.Client.Patch(ctx, &o.nodes[i], patch)
	}
	return fmt.Errorf("no node %s", name)
}

// markInSync sets the readiness gate of each pod, and what was seen of each node
// in its ValkeyNode. Only differences are written.
func (r *Reconciler) markInSync(ctx context.Context, o *observation) error {
	return together(len(o.nodes), func(i int) error {
		node := &o.nodes[i]
		pod := o.pods[node.Name]
		if pod != nil && pod.DeletionTimestamp.IsZero() {
			if err := r.setGate(ctx, pod, inSync(o, node.Name)); err != nil {
				return fmt.Errorf("set readiness gate of pod %s: %w", pod.Name, err)
			}
		}
		return r.recordNode(ctx, o, node)
	})
}

// setGate patches the pod's in-sync condition if it differs.
func (r *Reconciler) setGate(ctx context.Context, pod *corev1.Pod, want corev1.ConditionStatus) error {
	if want == corev1.ConditionUnknown || gateIs(pod, want) {
		return nil
	}
	if want == corev1.ConditionFalse && !gateIs(pod, corev1.ConditionTrue) {
		return nil // no condition says the same
	}
	condition := corev1.PodCondition{Type: v1alpha1.InSyncGate, Status: want, LastTransitionTime: metav1.Now()}
	patched := pod.DeepCopy()
	replaced := false
	for i := range patched.Status.Conditions {
		if patched.Status.Conditions[i].Type == condition.Type {
			patched.Status.Conditions[i] = condition
			replaced = true
		}
	}
	if !replaced {
		patched.Status.Conditions = append(patched.Status.Conditions, condition)
	}
	if err := r.Client.Status().Patch(ctx, patched, client.StrategicMergeFrom(pod.DeepCopy())); err != nil {
		return client.IgnoreNotFound(err)
	}
	*pod = *patched
	return nil
}

// recordNode writes what is known of a node into its status. The address is the
// node controller's to write.
func (r *Reconciler) recordNode(ctx context.Context, o *observation, node *v1alpha1.ValkeyNode) error {
	seen, ok := o.view.Nodes[node.Name]
	status := node.Status.DeepCopy()
	if ok && seen.Reachable {
		status.NodeID, status.Role = seen.ID, string(seen.Role)
		status.LagBytes = lag(o.view, seen, status.LagBytes)
	}
	pod := o.pods[node.Name]
	if host := o.hostName(node); host != "" {
		status.Host = host
	}
	status.Ready = pod != nil && gateIs(pod, corev1.ConditionTrue) && podPhase(node, pod) == plan.PodRunning && (!ok || seen.Reachable)
	if equality.Semantic.DeepEqual(*status, node.Status) || r.inVain(ctx, o, node, *status) {
		return nil
	}
	patch := client.MergeFrom(node.DeepCopy())
	node.Status = *status
	if err := r.Client.Status().Patch(ctx, node, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("update status of node %s: %w", node.Name, err))
	}
	r.pruned.written(o, node, *status)
	return nil
}

// lag returns how far a replica is behind its primary, in steps of which each is
// four times the last: what it is to the byte changes all the time, and nobody
// needs it. What can't be told leaves it as it was.
func lag(view topology.View, seen *topology.NodeView, before int64) int64 {
	if seen.Role != topology.RoleReplica {
		return 0
	}
	primary, ok := view.ByID(seen.PrimaryID)
	if !ok || !primary.Reachable {
		return before
	}
	behind := primary.Replication.Offset - seen.Replication.Offset
	step := int64(0)
	for next := int64(1 << 20); next <= behind; next *= 4 {
		step = next
	}
	return step
}
