package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// observation is everything that one pass knows of a cluster.
type observation struct {
	cluster  *v1alpha1.ValkeyCluster
	now      time.Time
	config   configuration
	tls      tlsState
	nodes    []v1alpha1.ValkeyNode // of this cluster, by name
	pods     map[string]*corev1.Pod
	former   map[string]*corev1.Pod
	replies  map[string]topology.Reply
	view     topology.View
	target   v1alpha1.TargetTopology
	creating bool
	holds    map[plan.Position]plan.Hold
	stalled  map[string]plan.Hold
	hosts    map[string]host
	silent   map[string]time.Duration
	gone     map[string]time.Duration
	leaving  map[string]time.Duration
	misread  map[string]time.Duration
	outdated map[string]string
	// open says for how long the ports outside have led to pods that are ready.
	open map[string]time.Duration
	// blinked are nodes in place that did not answer for the first time.
	blinked []string
	// awaited says which nodes are waited for because only they may have data.
	awaited []string
	// failovers says how long ago one was asked for in each shard.
	failovers map[int32]time.Duration
	// claims says which node of another cluster had the address of one that joins.
	claims map[string]string
	// outside is about clients outside Kubernetes.
	outside outside
	// confirmed is whether the API server said in this pass that the cluster is
	// there and not being deleted.
	confirmed bool
}

// observe reads the cluster's objects with the given reader and asks every
// server that has an address. A server that can't be asked is part of the
// observation, not an error.
func (r *Reconciler) observe(ctx context.Context, cluster *v1alpha1.ValkeyCluster, reader client.Reader) (*observation, error) {
	o := &observation{cluster: cluster, now: time.Now(), replies: map[string]topology.Reply{}}
	var err error
	if o.config, err = r.resolve(ctx, cluster); err != nil {
		return nil, err
	}
	if o.tls, err = r.checkTLS(ctx, o); err != nil {
		return nil, err
	}
	if o.nodes, o.pods, o.former, err = listNodes(ctx, reader, cluster); err != nil {
		return nil, err
	}
	if o.claims, err = r.claims(ctx, o); err != nil {
		return nil, err
	}
	r.ask(ctx, o)
	o.view = topology.Merge(slices.Collect(maps.Values(o.replies)))
	o.target, o.creating = plan.TargetOf(cluster, slotsAssigned(o.view) || o.anySilent()), plan.Creating(cluster)
	if o.hosts, err = r.hosts(ctx, o); err != nil {
		return nil, err
	}
	if err := r.observeOutside(ctx, reader, o); err != nil {
		return nil, err
	}
	r.remember(o)
	r.noteDeaths(o)
	o.stalled = r.stalls.note(client.ObjectKeyFromObject(cluster), slices.Collect(maps.Values(o.replies)), o.now)
	o.awaited = plan.AwaitedCopies(o.state())
	return o, nil
}

// anySilent reports whether somebody who may have slots does not answer.
func (o *observation) anySilent() bool {
	for _, reply := range o.replies {
		if reply.Err != nil {
			return true
		}
	}
	return false
}

func slotsAssigned(v topology.View) bool { return v.UnassignedSlots().Len() < slots.Count }

// listNodes returns the ValkeyNodes that the cluster owns, their pods, and by their names
// the pods of the cluster that belong to none of them (any more).
func listNodes(ctx context.Context, reader client.Reader, cluster *v1alpha1.ValkeyCluster) (owned []v1alpha1.ValkeyNode, pods, former map[string]*corev1.Pod, err error) {
	match := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{
		v1alpha1.LabelInstance: cluster.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
	}}
	var nodes v1alpha1.ValkeyNodeList
	if err := reader.List(ctx, &nodes, match...); err != nil {
		return nil, nil, nil, fmt.Errorf("list nodes of cluster %s: %w", cluster.Name, err)
	}
	owned = slices.DeleteFunc(nodes.Items, func(n v1alpha1.ValkeyNode) bool { return !metav1.IsControlledBy(&n, cluster) })
	slices.SortFunc(owned, func(a, b v1alpha1.ValkeyNode) int { return strings.Compare(a.Name, b.Name) })
	var all corev1.PodList
	if err := reader.List(ctx, &all, match...); err != nil {
		return nil, nil, nil, fmt.Errorf("list pods of cluster %s: %w", cluster.Name, err)
	}
	names := map[types.UID]string{}
	for i := range owned {
		names[owned[i].UID] = owned[i].Name
	}
	pods, former = map[string]*corev1.Pod{}, map[string]*corev1.Pod{}
	for i := range all.Items {
		pod := &all.Items[i]
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || names[owner.UID] == "" {
			former[pod.Name] = pod
			continue
		}
		pods[names[owner.UID]] = pod
	}
	return owned, pods, former, nil
}

// askTimeout bounds how long one server may take to answer everything.
const askTimeout = 4 * time.Second

// ask puts the same questions to every server with an address, all at once, so
// that one that hangs costs one timeout and not one each.
func (r *Reconciler) ask(ctx context.Context, o *observation) {
	var names []string
	for _, n := range o.nodes {
		pod := o.pods[n.Name]
		// An empty address is a pod that is not there yet, not a server to dial.
		if pod == nil || pod.Status.PodIP == "" || podPhase(&n, pod) != plan.PodRunning {
			continue
		}
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return
	}
	replies := make([]topology.Reply, len(names))
	_ = together(len(names), func(i int) error {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		pod := o.pods[names[i]]
		reply, err := r.askOne(ctx, o, names[i])
		reply.Node, reply.PodIP, reply.Err = names[i], pod.Status.PodIP, reach.Stable(err)
		if err != nil {
			reply.ID = o.recordedID(names[i])
		}
		replies[i] = reply
		return nil
	})
	for _, reply := range replies {
		o.replies[reply.Node] = reply
	}
}

func (r *Reconciler) askOne(ctx context.Context, o *observation, name string) (topology.Reply, error) {
	conn, err := r.dial(ctx, o, name)
	if err != nil {
		return topology.Reply{}, err
	}
	defer conn.Close()
	return conn.Observe(ctx)
}

// node of a name; it has to be one of the cluster's.
func (o *observation) node(name string) *v1alpha1.ValkeyNode {
	for i := range o.nodes {
		if o.nodes[i].Name == name {
			return &o.nodes[i]
		}
	}
	return &v1alpha1.ValkeyNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// recordedID is what a node called itself when it last answered.
func (o *observation) recordedID(name string) string {
	return o.node(name).Status.NodeID
}

// remember adds to the observation what only the manager's memory tells.
func (r *Reconciler) remember(o *observation) {
	key := client.ObjectKeyFromObject(o.cluster)
	o.silent, o.gone = map[string]time.Duration{}, map[string]time.Duration{}
	o.leaving, o.misread, o.open = map[string]time.Duration{}, map[string]time.Duration{}, map[string]time.Duration{}
	o.outdated, o.failovers = map[string]string{}, map[int32]time.Duration{}
	for i := range o.nodes {
		n := &o.nodes[i]
		seen, asked := o.view.Nodes[n.Name]
		before, was := r.moments.ago(key, "silent "+n.Name, o.now)
		o.silent[n.Name] = r.moments.since(key, "silent "+n.Name, !asked || !seen.Reachable, o.now)
		if asked && !seen.Reachable && n.Spec.Lifecycle == v1alpha1.LifecycleActive && (!was || before == 0) {
			o.blinked = append(o.blinked, n.Name)
		}
		o.gone[n.Name] = r.moments.since(key, "gone "+n.Name, o.pods[n.Name] == nil, o.now)
		o.open[n.Name] = r.opened(o, n.Name)
		o.misread[n.Name] = r.moments.since(key, "misread "+n.Name, plan.IsMisread(o.view, n.Name), o.now)
		o.leaving[n.Name] = r.moments.since(key, "leaving "+n.Name, isLeaving(o.pods[n.Name]), o.now)
		o.outdated[n.Name] = r.change(o, n).Replace
		if o.outdated[n.Name] == "" && o.olderThanRestart(n) {
			o.outdated[n.Name] = "a restart was asked for"
		}
		if ago, ok := r.moments.ago(key, failoverOf(n.Spec.ShardIndex), o.now); ok {
			o.failovers[n.Spec.ShardIndex] = ago
		}
	}
}

func failoverOf(shard int32) string { return fmt.Sprintf("failover %d", shard) }

// recorded are the slots of each shard by the last status that knew them.
func (o *observation) recorded() map[int32]slots.Set {
	out := map[int32]slots.Set{}
	for _, shard := range o.cluster.Status.Shards {
		if owned, err := slots.ParseSet(shard.Slots); err == nil {
			out[shard.Index] = owned
		}
	}
	return out
}

// noteDeaths counts nodes that died before they joined, and says how long their
// positions have to wait.
func (r *Reconciler) noteDeaths(o *observation) {
	key := client.ObjectKeyFromObject(o.cluster)
	o.holds = map[plan.Position]plan.Hold{}
	for _, n := range o.planNodes() {
		switch {
		case n.Lifecycle == v1alpha1.LifecycleJoining && n.Dead():
			r.holds.died(key, n.Position, n.Name, o.now)
			wait, why := r.holds.remaining(key, n.Position, o.now), n.Detail
			if why == "" {
				why = "its pod is gone"
			}
			o.holds[n.Position] = plan.Hold{
				Remaining: wait,
				Reason:    fmt.Sprintf("node %s died before it joined (%s); another is made at %s", n.Name, why, o.now.Add(wait).UTC().Format("15:04:05 MST")),
			}
		case n.Lifecycle == v1alpha1.LifecycleActive && !n.Dead() && n.Outdated == "":
			// One that is being replaced does not make up for successors that die.
			r.holds.joined(key, n.Position)
		}
	}
}

// state is what the planner needs of the observation.
func (o *observation) state() plan.State {
	return plan.State{
		Cluster: o.cluster.Name, UID: string(o.cluster.UID), Target: o.target, Creating: o.creating,
		Nodes: o.planNodes(), Replies: slices.Collect(maps.Values(o.replies)), Holds: o.holds, Stalled: o.stalled,
		Recorded: o.recorded(), Former: o.formerNames(), Failovers: o.failovers, LossAccepted: o.lossAccepted(), Claimed: o.claims,
		Unexposed: o.unexposed(), Unrouted: o.unrouted(), Ending: o.ending(),
	}
}

func (o *observation) formerNames() map[string]bool {
	out := map[string]bool{}
	for name := range o.former {
		out[name] = true
	}
	return out
}

func (o *observation) planNodes() []plan.Node {
	out := make([]plan.Node, 0, len(o.nodes))
	for i := range o.nodes {
		n := &o.nodes[i]
		pod := o.pods[n.Name]
		node := plan.Node{
			Name: n.Name, Position: plan.Position{Shard: n.Spec.ShardIndex, Index: n.Spec.NodeIndex},
			Lifecycle: n.Spec.Lifecycle, Pod: podPhase(n, pod), Terminating: !n.DeletionTimestamp.IsZero(),
			NodeID: n.Status.NodeID, Role: topology.Role(n.Status.Role), Age: o.now.Sub(n.CreationTimestamp.Time), Detail: nodeDetail(n, pod),
		}
		if reply := o.replies[n.Name]; node.NodeID == "" {
			node.NodeID = reply.ID
		}
		node.External = o.external(n, pod)
		name := o.hostName(n)
		node.Silent, node.Misread, node.Outdated = o.silent[n.Name], o.misread[n.Name], o.outdated[n.Name]
		node.Zone, node.HostGone = o.hosts[name].zone, o.hosts[name].hostGone(name, o.gone[n.Name], o.now)
		if pod != nil {
			node.TerminatingFor = terminatingFor(pod, o.leaving[n.Name], o.now)
			node.PodIP = pod.Status.PodIP
			node.InSync = gateIs(pod, corev1.ConditionTrue)
			node.Terminating = node.Terminating || isLeaving(pod)
		}
		out = append(out, node)
	}
	return out
}

// configuration is the resolved config chain with what is wrong about it.
type configuration struct {
	settings.Resolved
	roles    map[string]*v1alpha1.ValkeyRole
	problems []settings.Problem
	// aclProblems keep the users from being published.
	aclProblems []settings.Problem
}

// all are the problems of the chain and of the users.
func (c configuration) all() []settings.Problem {
	return append(slices.Clone(c.problems), c.aclProblems...)
}

// resolve reads the menu and resolves the cluster's configuration.
func (r *Reconciler) resolve(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (configuration, error) {
	catalog, err := reach.Menu(ctx, r.Client)
	if err != nil {
		return configuration{}, err
	}
	resolved, problems := settings.Resolve(catalog, cluster.Spec.ConfigRef)
	if len(problems) == 0 {
		problems = settings.Check(resolved)
	}
	c := configuration{Resolved: resolved, roles: catalog.Roles, problems: problems}
	_, c.aclProblems = acl.Render(reach.ACLInput(c.ACL, c.roles, cluster, objects.Passwords{}))
	return c, nil
}

// blocking returns what keeps every change from being made. A reference that is
// missing stops only what needs it: a cluster whose nodes are all there is still
// looked after.
func (o *observation) blocking() *problem {
	if o.tls.invalid != nil {
		return o.tls.invalid
	}
	if len(o.nodes) == 0 || o.creating {
		for _, p := range o.config.all() {
			return &problem{p.Reason, p.Message}
		}
	}
	return nil
}

// next plans. A cluster that is being created is complete only when the controllers of
// users and certificates have looked at every node too, a moment after the last one came
// into place.
func (o *observation) next() plan.Decision {
	decision := plan.Next(o.state())
	if kind, ok := unseen(o.cluster); decision.Complete && o.creating && ok {
		decision.Complete, decision.Waiting = false, "the nodes are in place, but not all were looked at for "+kind
	}
	return decision
}

// unseen returns the condition by which another controller says that it has not looked
// at every node yet. After a while such a condition says what is wrong instead.
func unseen(c *v1alpha1.ValkeyCluster) (kind string, ok bool) {
	for _, kind := range []string{v1alpha1.ConditionTLSReady, v1alpha1.ConditionACLApplied} {
		now := meta.FindStatusCondition(c.Status.Conditions, kind)
		if now == nil {
			if kind == v1alpha1.ConditionTLSReady && c.Spec.TLS == nil {
				continue
			}
			return kind, true
		}
		switch now.Reason {
		case v1alpha1.ReasonWaiting, v1alpha1.ReasonTLSRotating, v1alpha1.ReasonACLPending:
			return kind, true
		}
	}
	return "", false
}
