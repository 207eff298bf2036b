package cluster

import (
	"context"
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// outsideOutcome is what one pass did for external access. Trouble with it stops
// nothing else.
type outsideOutcome struct {
	// problems keep it from what is wished.
	problems []settings.Problem
	// acted is true if something was written or told.
	acted bool
	// moving is true while a label is on its way.
	moving bool
	// unlisted are nodes that their Service does not lead to yet.
	unlisted []string
}

func (x *outsideOutcome) note(acted bool, err error) {
	x.acted = x.acted || acted
	if err != nil {
		x.problems = append(x.problems, problemOf(err))
	}
}

// openOutside makes the Services and routes, tells nodes what to announce, and moves
// labels. The error is of what nothing else may go on without.
func (r *Reconciler) openOutside(ctx context.Context, o *observation, out *outsideOutcome) error {
	if !o.outside.inPlay {
		return nil
	}
	if objects.ExternalEnabled(o.cluster) {
		for shard, nodes := range o.nodesOfShards() {
			out.note(r.ensureShardService(ctx, o, int32(shard), nodes))
		}
	}
	out.note(r.ensureRoutes(ctx, o))
	out.note(r.dropSurplusServices(ctx, o))
	if err := r.recordAnnouncements(ctx, o); err != nil {
		return err
	}
	acted, err := r.takeStep(ctx, o)
	out.note(acted, err)
	if err == nil {
		err = r.recordAnnouncements(ctx, o)
	}
	if err != nil && acted {
		return err // a new node has to know what the others announce
	}
	out.note(r.moveLabels(ctx, o, out))
	out.note(false, r.checkListed(ctx, o, out))
	return nil
}

// checkListed finds the nodes that Services don't lead to yet, until they lead to all
// of them: the label is not the connection.
func (r *Reconciler) checkListed(ctx context.Context, o *observation, out *outsideOutcome) error {
	if !objects.ExternalEnabled(o.cluster) || meta.IsStatusConditionTrue(o.cluster.Status.Conditions, v1alpha1.ConditionExternalAccessReady) {
		return nil
	}
	for shard := range o.outside.services {
		listed, err := r.listed(ctx, o, shard)
		if err != nil {
			return err
		}
		for i := range o.nodes {
			n := &o.nodes[i]
			if n.Spec.ShardIndex == shard && labelled(o.pods[n.Name]) && !slices.ContainsFunc(listed[objects.ExternalPortName(n.Spec.NodeIndex)], leadsTo(n.Name)) {
				out.unlisted = append(out.unlisted, n.Name)
			}
		}
	}
	slices.Sort(out.unlisted)
	return nil
}

// ensureShardService makes or corrects the Service of a shard. Its type stays as
// long as clients are directed to what it has allocated.
func (r *Reconciler) ensureShardService(ctx context.Context, o *observation, shard, nodes int32) (bool, error) {
	want := objects.ShardService(o.cluster, shard, nodes)
	live := o.outside.services[shard]
	if o.outside.leaving[shard] {
		return false, fmt.Errorf("the Service %s is being deleted; it is made anew when it is gone", want.Name)
	}
	if live == nil {
		if err := r.create(ctx, o, want); err != nil {
			return false, err
		}
		log.FromContext(ctx).Info("service created", "service", want.Name)
		return true, nil
	}
	if live.Spec.Type != want.Spec.Type && !o.outside.withdrawn() {
		want.Spec.Type, want.Spec.ExternalTrafficPolicy = live.Spec.Type, live.Spec.ExternalTrafficPolicy
	}
	updated := live.DeepCopy()
	if !objects.UpdateShardService(updated, want) {
		return false, nil
	}
	err := r.Client.Patch(ctx, updated, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return true, nil // somebody else was faster; the next pass sees it
	}
	if err != nil {
		return false, fmt.Errorf("update Service %s: %w", live.Name, err)
	}
	log.FromContext(ctx).Info("service updated", "service", want.Name)
	return true, nil
}

// dropSurplusServices deletes the Services of shards that are gone or, once nobody is
// directed to them, all of them.
func (r *Reconciler) dropSurplusServices(ctx context.Context, o *observation) (bool, error) {
	keep := int32(len(o.nodesOfShards()))
	if !objects.ExternalEnabled(o.cluster) {
		if !o.outside.withdrawn() {
			return false, nil
		}
		keep = 0
	}
	acted := false
	for shard, service := range o.outside.services {
		if shard < keep {
			continue
		}
		err := r.Client.Delete(ctx, service, client.Preconditions{UID: &service.UID})
		if client.IgnoreNotFound(err) != nil {
			return acted, fmt.Errorf("delete Service %s: %w", service.Name, err)
		}
		log.FromContext(ctx).Info("service deleted", "service", service.Name)
		acted = true
	}
	return acted, nil
}

// takeStep tells nodes what to announce from now on, each in one command.
func (r *Reconciler) takeStep(ctx context.Context, o *observation) (bool, error) {
	step := o.outside.step
	if len(step.Set) == 0 {
		return false, nil
	}
	known, err := r.knowsAllNodes(ctx, o)
	if err != nil || !known {
		return false, err
	}
	var names []string
	for _, m := range o.outside.situation.Members {
		if _, ok := step.Set[m.Name]; ok {
			names = append(names, m.Name)
		}
	}
	tls := o.cluster.Spec.TLS != nil
	took := make([]*announce.Values, len(names))
	err = together(len(names), func(i int) error {
		want := step.Set[names[i]]
		err := r.with(ctx, o, names[i], func(ctx context.Context, node valkey.Node) error {
			if err := node.ConfigSet(ctx, want.Assignments(tls)...); err != nil {
				return err
			}
			got, err := readAnnouncement(ctx, node, tls)
			if err == nil {
				took[i] = &got
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("tell node %s what to announce: %w", names[i], err)
		}
		return nil
	})
	acted := false
	for i, v := range took {
		if v != nil {
			o.outside.announced[names[i]], acted = *v, true
		}
	}
	r.moments.since(client.ObjectKeyFromObject(o.cluster), agreed, false, o.now)
	log.FromContext(ctx).Info("announcements changed", "reason", step.Reason, "nodes", names)
	return acted, err
}

// knowsAllNodes reports whether the cache has every node: one that it misses may be
// about to start with what fits the step before.
func (r *Reconciler) knowsAllNodes(ctx context.Context, o *observation) (bool, error) {
	var nodes v1alpha1.ValkeyNodeList
	if err := r.Live.List(ctx, &nodes, client.InNamespace(o.cluster.Namespace), client.MatchingLabels{
		v1alpha1.LabelInstance: o.cluster.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
	}); err != nil {
		return false, fmt.Errorf("list nodes of cluster %s: %w", o.cluster.Name, err)
	}
	for i := range nodes.Items {
		if !slices.ContainsFunc(o.nodes, func(n v1alpha1.ValkeyNode) bool { return n.UID == nodes.Items[i].UID }) {
			return false, nil
		}
	}
	return true, nil
}

// recordAnnouncements writes down what nodes announce: nodes that start later are to
// fit them, also when these don't answer then.
func (r *Reconciler) recordAnnouncements(ctx context.Context, o *observation) error {
	return together(len(o.nodes), func(i int) error {
		n := &o.nodes[i]
		v, ok := o.outside.announced[n.Name]
		if !ok {
			return nil
		}
		now := v.Announcement()
		if a := n.Status.Applied; a != nil && a.Announcement != nil && *a.Announcement == now {
			return nil
		}
		before := n.DeepCopy()
		if n.Status.Applied == nil {
			n.Status.Applied = &v1alpha1.Applied{}
		}
		n.Status.Applied.Announcement = &now
		if err := r.Client.Status().Patch(ctx, n, client.MergeFrom(before)); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("record what node %s announces: %w", n.Name, err))
		}
		return nil
	})
}

// moveLabels takes labels off first. One is put on once the Service lists no other
// pod for that port, so that a port never leads to two.
func (r *Reconciler) moveLabels(ctx context.Context, o *observation, out *outsideOutcome) (bool, error) {
	if !o.exposing() {
		return false, nil
	}
	off, on := plan.Labels(o.state())
	acted := false
	for _, name := range off {
		if err := r.setLabel(ctx, o, name, false); err != nil {
			return acted, err
		}
		acted = true
	}
	for _, name := range on {
		if o.pods[name] == nil {
			continue
		}
		free, err := r.portFree(ctx, o, name)
		if err != nil {
			return acted, err
		}
		if !free {
			out.moving = true
			continue
		}
		if err := r.setLabel(ctx, o, name, true); err != nil {
			return acted, err
		}
		acted = true
	}
	return acted, nil
}

// setLabel says whether a node's port outside leads to its pod.
func (r *Reconciler) setLabel(ctx context.Context, o *observation, name string, on bool) error {
	pod := o.pods[name]
	if pod == nil {
		return nil
	}
	patched := pod.DeepCopy()
	if on {
		patched.Labels[v1alpha1.LabelExternal] = objects.ExternalLabelValue
	} else {
		delete(patched.Labels, v1alpha1.LabelExternal)
	}
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, patched, client.MergeFrom(pod))); err != nil {
		return fmt.Errorf("label pod %s: %w", name, err)
	}
	o.pods[name] = patched
	log.FromContext(ctx).Info("outside port moved", "node", name, "leadsToIt", on)
	return nil
}

// portFree reports whether no other pod is listed for a node's port.
func (r *Reconciler) portFree(ctx context.Context, o *observation, name string) (bool, error) {
	i := slices.IndexFunc(o.nodes, func(n v1alpha1.ValkeyNode) bool { return n.Name == name })
	spec := o.nodes[i].Spec
	listed, err := r.listed(ctx, o, spec.ShardIndex)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(listed[objects.ExternalPortName(spec.NodeIndex)], func(e discoveryv1.Endpoint) bool { return podOf(e) != name }), nil
}

// listed are the endpoints of a shard's Service, by the name of its port.
func (r *Reconciler) listed(ctx context.Context, o *observation, shard int32) (map[string][]discoveryv1.Endpoint, error) {
	var list discoveryv1.EndpointSliceList
	if err := r.Live.List(ctx, &list, client.InNamespace(o.cluster.Namespace), client.MatchingLabels{
		discoveryv1.LabelServiceName: objects.ShardServiceName(o.cluster.Name, shard),
	}); err != nil {
		return nil, fmt.Errorf("list the endpoints of shard %d: %w", shard, err)
	}
	listed := map[string][]discoveryv1.Endpoint{}
	for i := range list.Items {
		for _, port := range list.Items[i].Ports {
			if port.Name != nil {
				listed[*port.Name] = append(listed[*port.Name], list.Items[i].Endpoints...)
			}
		}
	}
	return listed, nil
}

func podOf(e discoveryv1.Endpoint) string {
	if e.TargetRef == nil {
		return ""
	}
	return e.TargetRef.Name
}

// leadsTo reports whether connections are made to a pod. What is not ready is listed
// too, but not led to.
func leadsTo(pod string) func(discoveryv1.Endpoint) bool {
	return func(e discoveryv1.Endpoint) bool { return podOf(e) == pod && ptr.Deref(e.Conditions.Ready, true) }
}

// leadsToHeir takes the label off a primary in whose own place another node is about
// to take over, which gets it as soon as the Service has taken notice.
func (r *Reconciler) leadsToHeir(ctx context.Context, o *observation, a plan.Action) error {
	i := slices.IndexFunc(o.nodes, func(n v1alpha1.ValkeyNode) bool { return n.Name == a.Target })
	if i < 0 || a.Node == a.Target {
		return nil
	}
	at := plan.Position{Shard: o.nodes[i].Spec.ShardIndex, Index: o.nodes[i].Spec.NodeIndex}
	if at != a.Position || !labelled(o.pods[a.Target]) {
		return nil
	}
	return r.setLabel(ctx, o, a.Target, false)
}
