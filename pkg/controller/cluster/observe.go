package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// observation is everything that one pass knows of a cluster.
type observation struct {
	cluster  *v1alpha1.ValkeyCluster
	now      time.Time
	config   configuration
	tls      tlsMaterial
	nodes    []v1alpha1.ValkeyNode // of this cluster, by name
	pods     map[string]*corev1.Pod
	replies  map[string]topology.Reply
	view     topology.View
	target   v1alpha1.TargetTopology
	creating bool
	holds    map[plan.Position]plan.Hold
	hosts    map[string]host
	silent   map[string]time.Duration
	outdated map[string]string
	// blinked are nodes in place that did not answer for the first time.
	blinked []string
	// awaited says which nodes are waited for because only they may have data.
	awaited []string
	// failovers says how long ago one was asked for in each shard.
	failovers map[int32]time.Duration
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
	if o.tls, err = r.checkTLS(ctx, cluster, o.now); err != nil {
		return nil, err
	}
	if o.nodes, o.pods, err = listNodes(ctx, reader, cluster); err != nil {
		return nil, err
	}
	r.ask(ctx, o)
	o.view = topology.Merge(slices.Collect(maps.Values(o.replies)))
	o.target, o.creating = target(cluster, slotsAssigned(o.view))
	if o.hosts, err = r.hosts(ctx, o); err != nil {
		return nil, err
	}
	if err := r.observeOutside(ctx, reader, o); err != nil {
		return nil, err
	}
	r.remember(o)
	r.noteDeaths(o)
	o.awaited = plan.AwaitedCopies(o.state())
	return o, nil
}

// target returns the shape to work towards. While the cluster is being created
// and slots are assigned already that is the snapshot in status.targetSpec, so
// that an edit meanwhile is applied afterwards; before and after it is the spec.
func target(c *v1alpha1.ValkeyCluster, assigned bool) (v1alpha1.TargetTopology, bool) {
	creating := !createdOnce(c)
	if creating && assigned && c.Status.TargetSpec != nil {
		return *c.Status.TargetSpec, true
	}
	return v1alpha1.TargetTopology{Shards: c.Spec.Shards, ReplicasPerShard: c.Spec.ReplicasPerShard}, creating
}

func slotsAssigned(v topology.View) bool { return v.UnassignedSlots().Len() < slots.Count }

// createdOnce reports whether the cluster was complete at some time. TargetSpec is
// there only while it is being created, so it also tells an Invalid cluster that
// never was Active from one that was.
func createdOnce(c *v1alpha1.ValkeyCluster) bool {
	return c.Status.State != "" && c.Status.State != v1alpha1.StateCreating && c.Status.TargetSpec == nil
}

// listNodes returns the ValkeyNodes that the cluster owns and their pods.
func listNodes(ctx context.Context, reader client.Reader, cluster *v1alpha1.ValkeyCluster) ([]v1alpha1.ValkeyNode, map[string]*corev1.Pod, error) {
	match := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{
		v1alpha1.LabelInstance: cluster.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
	}}
	var nodes v1alpha1.ValkeyNodeList
	if err := reader.List(ctx, &nodes, match...); err != nil {
		return nil, nil, fmt.Errorf("list nodes of cluster %s: %w", cluster.Name, err)
	}
	owned := slices.DeleteFunc(nodes.Items, func(n v1alpha1.ValkeyNode) bool { return !metav1.IsControlledBy(&n, cluster) })
	slices.SortFunc(owned, func(a, b v1alpha1.ValkeyNode) int { return strings.Compare(a.Name, b.Name) })
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, match...); err != nil {
		return nil, nil, fmt.Errorf("list pods of cluster %s: %w", cluster.Name, err)
	}
	byNode := map[string]*corev1.Pod{}
	for i := range owned {
		for j := range pods.Items {
			if metav1.IsControlledBy(&pods.Items[j], &owned[i]) {
				byNode[owned[i].Name] = &pods.Items[j]
			}
		}
	}
	return owned, byNode, nil
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
	credentials, authErr := r.operatorCredentials(ctx, o.cluster)
	replies := make([]topology.Reply, len(names))
	_ = together(len(names), func(i int) error {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		pod := o.pods[names[i]]
		reply, err := topology.Reply{}, authErr
		if err == nil {
			reply, err = r.askOne(ctx, o, names[i], credentials)
		}
		reply.Node, reply.PodIP, reply.Err = names[i], pod.Status.PodIP, stable(err)
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

// ephemeral matches the local address of a broken connection.
var ephemeral = regexp.MustCompile(`\S+:\d+->`)

// stable takes out of an error what differs each time, so that the same trouble
// is the same text in conditions.
func stable(err error) error {
	if err == nil || !ephemeral.MatchString(err.Error()) {
		return err
	}
	return errors.New(ephemeral.ReplaceAllString(err.Error(), ""))
}

func (r *Reconciler) askOne(ctx context.Context, o *observation, name string, credentials valkey.Credentials) (topology.Reply, error) {
	if o.cluster.Spec.TLS != nil && o.tls.roots == nil {
		return topology.Reply{}, errors.New("its certificate can't be verified while the TLS Secret is unusable")
	}
	conn, err := r.Options.Dialer.Dial(ctx, r.dialTarget(o, name), credentials)
	if err != nil {
		return topology.Reply{}, err
	}
	defer conn.Close()
	return conn.Observe(ctx)
}

// recordedID is what a node called itself when it last answered.
func (o *observation) recordedID(name string) string {
	for i := range o.nodes {
		if o.nodes[i].Name == name {
			return o.nodes[i].Status.NodeID
		}
	}
	return ""
}

// remember adds to the observation what only the manager's memory tells.
func (r *Reconciler) remember(o *observation) {
	key := client.ObjectKeyFromObject(o.cluster)
	o.silent, o.outdated, o.failovers = map[string]time.Duration{}, map[string]string{}, map[int32]time.Duration{}
	for i := range o.nodes {
		n := &o.nodes[i]
		seen, asked := o.view.Nodes[n.Name]
		before, was := r.moments.ago(key, "silent "+n.Name, o.now)
		o.silent[n.Name] = r.moments.since(key, "silent "+n.Name, !asked || !seen.Reachable, o.now)
		if asked && !seen.Reachable && n.Spec.Lifecycle == v1alpha1.LifecycleActive && (!was || before == 0) {
			o.blinked = append(o.blinked, n.Name)
		}
		o.outdated[n.Name] = r.change(o, n).Replace
		if req, ok := o.open(verbRestart); ok && o.outdated[n.Name] == "" && n.CreationTimestamp.Before(req.moment()) {
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
			wait := r.holds.remaining(key, n.Position, o.now)
			o.holds[n.Position] = plan.Hold{
				Remaining: wait,
				Reason:    fmt.Sprintf("node %s died before it joined (%s); another is made at %s", n.Name, n.Detail, o.now.Add(wait).UTC().Format("15:04:05 MST")),
			}
		case n.Lifecycle == v1alpha1.LifecycleActive && !n.Dead():
			r.holds.joined(key, n.Position)
		}
	}
}

// state is what the planner needs of the observation.
func (o *observation) state() plan.State {
	return plan.State{
		Cluster: o.cluster.Name, UID: string(o.cluster.UID), Target: o.target, Creating: o.creating,
		Nodes: o.planNodes(), Replies: slices.Collect(maps.Values(o.replies)), Holds: o.holds,
		Recorded: o.recorded(), Failovers: o.failovers, LossAccepted: o.lossAccepted(), Unexposed: o.unexposed(),
	}
}

func (o *observation) planNodes() []plan.Node {
	out := make([]plan.Node, 0, len(o.nodes))
	for i := range o.nodes {
		n := &o.nodes[i]
		pod := o.pods[n.Name]
		node := plan.Node{
			Name: n.Name, Position: plan.Position{Shard: n.Spec.ShardIndex, Index: n.Spec.NodeIndex},
			Lifecycle: n.Spec.Lifecycle, Pod: podPhase(n, pod), Terminating: !n.DeletionTimestamp.IsZero(),
			NodeID: n.Status.NodeID, Age: o.now.Sub(n.CreationTimestamp.Time), Detail: nodeDetail(n, pod),
		}
		if reply := o.replies[n.Name]; node.NodeID == "" {
			node.NodeID = reply.ID
		}
		node.External = o.external(n, pod)
		name := o.hostName(n)
		node.Silent, node.Outdated = o.silent[n.Name], o.outdated[n.Name]
		node.Zone, node.HostGone = o.hosts[name].zone, o.hosts[name].hostGone(name, node.Silent)
		if pod != nil {
			node.TerminatingFor = terminatingFor(pod, o.now)
			node.PodIP = pod.Status.PodIP
			node.InSync = gateIs(pod, corev1.ConditionTrue)
			node.Terminating = node.Terminating || !pod.DeletionTimestamp.IsZero()
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
	var configs v1alpha1.ValkeyConfigList
	var images v1alpha1.ValkeyImageList
	var roles v1alpha1.ValkeyRoleList
	if err := errors.Join(r.Client.List(ctx, &configs), r.Client.List(ctx, &images), r.Client.List(ctx, &roles)); err != nil {
		return configuration{}, fmt.Errorf("read the menu: %w", err)
	}
	catalog := settings.Catalog{
		Configs: byName(configs.Items, func(c *v1alpha1.ValkeyConfig) string { return c.Name }),
		Images:  byName(images.Items, func(i *v1alpha1.ValkeyImage) string { return i.Name }),
		Roles:   byName(roles.Items, func(role *v1alpha1.ValkeyRole) string { return role.Name }),
	}
	resolved, problems := settings.Resolve(catalog, cluster.Spec.ConfigRef)
	if len(problems) == 0 {
		problems = settings.Check(resolved)
	}
	c := configuration{Resolved: resolved, roles: catalog.Roles, problems: problems}
	_, c.aclProblems = acl.Render(c.aclInput(cluster, objects.Passwords{}))
	return c, nil
}

func byName[T any](items []T, name func(*T) string) map[string]*T {
	out := make(map[string]*T, len(items))
	for i := range items {
		out[name(&items[i])] = &items[i]
	}
	return out
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
