package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
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
	credentials, err := r.operatorCredentials(ctx, o.cluster)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	node, err := r.Options.Dialer.Dial(ctx, r.dialTarget(o, a.Node), credentials)
	if err != nil {
		return err
	}
	defer node.Close()
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
		if err := node.AddSlots(ctx, a.Slots); err != nil {
			return err
		}
		// Else a former owner that comes back after all takes the slots again.
		return node.BumpEpoch(ctx)
	case plan.MoveSlots:
		return moveSlots(ctx, node, a)
	}
	return fmt.Errorf("no command for action %s", a.Kind)
}

// errUnderWay says that an earlier pass started what an action asks for.
var errUnderWay = errors.New("under way")

// moveSlots starts a migration unless the source is still busy with one: the
// server refuses a slot that is already on its way. A migration of these slots
// that failed is an error, so that the next attempt waits.
func moveSlots(ctx context.Context, node valkey.Node, a plan.Action) error {
	jobs, err := node.SlotMigrations(ctx)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if job.Export && !job.Done() {
			return errUnderWay
		}
	}
	if err := node.MigrateSlots(ctx, valkey.Export{Slots: a.Slots, TargetID: a.TargetID}); err != nil {
		return err
	}
	if len(jobs) > 0 && jobs[0].Export && jobs[0].Failed() && jobs[0].TargetID == a.TargetID {
		return fmt.Errorf("the migration before this attempt %s: %s", jobs[0].State, jobs[0].Message)
	}
	return nil
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
	}
	pod := o.pods[node.Name]
	if host := o.hostName(node); host != "" {
		status.Host = host
	}
	status.Ready = pod != nil && gateIs(pod, corev1.ConditionTrue) && podPhase(node, pod) == plan.PodRunning && (!ok || seen.Reachable)
	if status.NodeID == node.Status.NodeID && status.Role == node.Status.Role && status.Ready == node.Status.Ready && status.Host == node.Status.Host {
		return nil
	}
	patch := client.MergeFrom(node.DeepCopy())
	node.Status.NodeID, node.Status.Role, node.Status.Ready, node.Status.Host = status.NodeID, status.Role, status.Ready, status.Host
	if err := r.Client.Status().Patch(ctx, node, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("update status of node %s: %w", node.Name, err))
	}
	return nil
}
