package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// outside is what a pass knows of external access.
type outside struct {
	// inPlay is whether external access is on, or something of it is left.
	inPlay bool
	// services and routes of the cluster, by shard; those of others are left out.
	services map[int32]*corev1.Service
	gateway  objects.GatewayState
	routes   map[objects.Place]*gatewayv1.TCPRoute
	// routeVersion of TCPRoute that the API server serves; empty for none.
	routeVersion string
	// leaving are the shards whose Service is being deleted.
	leaving map[int32]bool
	// endpoints and pending as the objects are now.
	endpoints []v1alpha1.ExternalEndpoint
	pending   map[int32]string
	// announced is what each node that answered announces, by name.
	announced map[string]announce.Values
	situation announce.Situation
	step      announce.Step
}

// agreed is since when all tables have what is announced.
const agreed = "announcements agree"

// withdrawn reports whether no client is given an outside name any more.
func (x outside) withdrawn() bool { return !x.inPlay || x.situation.Withdrawn() }

// exposing reports whether nodes have ports outside.
func (o *observation) exposing() bool {
	return objects.ExternalEnabled(o.cluster) || len(o.outside.services) > 0
}

// turningOff reports whether nodes have to stay as they are: clients may still be
// directed to them from outside, or they are on the way back from that, which a node
// that starts without external access would not fit.
func (o *observation) turningOff() bool {
	x := &o.outside
	return x.inPlay && !objects.ExternalEnabled(o.cluster) && (!x.step.Done() || !x.withdrawn() || len(x.services) > 0)
}

// observeOutside reads Services and routes, asks the nodes what they announce, and
// works out the next step.
func (r *Reconciler) observeOutside(ctx context.Context, reader client.Reader, o *observation) error {
	if err := r.shardServices(ctx, reader, o); err != nil {
		return err
	}
	x := &o.outside
	x.inPlay = o.exposing() || o.traces()
	if !x.inPlay {
		return nil
	}
	var err error
	if x.gateway, err = r.observeGateway(ctx, o); err != nil {
		return err
	}
	if objects.ExternalEnabled(o.cluster) {
		x.endpoints, x.pending = objects.ExternalEndpoints(objects.ExternalInput{
			Cluster: o.cluster, Nodes: o.nodesOfShards(), Services: x.services, Gateway: x.gateway,
		})
	}
	x.announced = r.askAnnouncements(ctx, o)
	x.situation = r.situation(o)
	x.situation.Quiet = r.moments.since(client.ObjectKeyFromObject(o.cluster), agreed, x.situation.Agreed(), o.now)
	x.step = announce.Next(x.situation)
	return nil
}

// traces reports whether nodes have, or clusters show, something of external access.
func (o *observation) traces() bool {
	if len(o.cluster.Status.ExternalEndpoints) > 0 {
		return true
	}
	for i := range o.nodes {
		n := &o.nodes[i]
		if n.Spec.External {
			return true
		}
		if a := n.Status.Applied; a != nil && a.Announcement != nil {
			if a.Announcement.ClientPort != 0 || o.cluster.Spec.TLS == nil && *a.Announcement != (v1alpha1.Announcement{EndpointType: v1alpha1.EndpointIP}) {
				return true
			}
		}
	}
	return false
}

// nodesOfShards counts the ports that each shard needs: those of the wish, and those
// of nodes that have not gone yet.
func (o *observation) nodesOfShards() []int32 {
	var shards []int32
	for range o.target.Shards {
		shards = append(shards, o.target.ReplicasPerShard+1)
	}
	for i := range o.nodes {
		spec := o.nodes[i].Spec
		for int(spec.ShardIndex) >= len(shards) {
			shards = append(shards, 0)
		}
		shards[spec.ShardIndex] = max(shards[spec.ShardIndex], spec.NodeIndex+1)
	}
	return shards
}

// shardServices finds the Services that expose shards and belong to the cluster.
func (r *Reconciler) shardServices(ctx context.Context, reader client.Reader, o *observation) error {
	var list corev1.ServiceList
	if err := reader.List(ctx, &list, client.InNamespace(o.cluster.Namespace), client.HasLabels{v1alpha1.LabelShardIndex}, client.MatchingLabels{
		v1alpha1.LabelInstance: o.cluster.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
	}); err != nil {
		return fmt.Errorf("list Services of cluster %s: %w", o.cluster.Name, err)
	}
	o.outside.services, o.outside.leaving = map[int32]*corev1.Service{}, map[int32]bool{}
	for i := range list.Items {
		s := &list.Items[i]
		shard, err := objects.ShardOf(s.Labels)
		switch {
		case err != nil || !metav1.IsControlledBy(s, o.cluster) || s.Name != objects.ShardServiceName(o.cluster.Name, shard):
		case s.DeletionTimestamp.IsZero():
			o.outside.services[shard] = s
		default:
			o.outside.leaving[shard] = true
		}
	}
	return nil
}

// askAnnouncements asks every node that answered what it announces.
func (r *Reconciler) askAnnouncements(ctx context.Context, o *observation) map[string]announce.Values {
	names := o.answering()
	values := make([]*announce.Values, len(names))
	_ = together(len(names), func(i int) error {
		// A node that answered a moment ago and does not now is one that does not answer.
		_ = r.with(ctx, o, names[i], func(ctx context.Context, node valkey.Node) error {
			v, err := readAnnouncement(ctx, node, o.cluster.Spec.TLS != nil)
			if err == nil {
				values[i] = &v
			}
			return err
		})
		return nil
	})
	out := map[string]announce.Values{}
	for i, v := range values {
		if v != nil {
			out[names[i]] = *v
		}
	}
	return out
}

func readAnnouncement(ctx context.Context, node valkey.Node, tls bool) (announce.Values, error) {
	answer, err := node.ConfigGet(ctx, announce.DirectiveNames(tls)...)
	if err != nil {
		return announce.Values{}, err
	}
	v, ok := announce.Read(answer, tls)
	if !ok {
		return v, fmt.Errorf("the server says nothing of what it announces")
	}
	return v, nil
}

// answering are the names of the nodes that answered in this pass, sorted.
func (o *observation) answering() []string {
	var names []string
	for name, v := range o.view.Nodes {
		if v.Reachable {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// with connects to a node for as long as f takes.
func (r *Reconciler) with(ctx context.Context, o *observation, name string, f func(context.Context, valkey.Node) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	node, err := r.dial(ctx, o, name)
	if err != nil {
		return err
	}
	defer node.Close()
	return f(ctx, node)
}

// situation is what pkg/announce decides from.
func (r *Reconciler) situation(o *observation) announce.Situation {
	x := &o.outside
	s := announce.Situation{TLS: o.cluster.Spec.TLS != nil, External: o.cluster.Spec.ExternalAccess, Withdraw: o.withdraw()}
	if len(x.pending) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(x.pending)))
		s.Pending = x.pending[first]
	}
	dead := map[string]bool{}
	for _, n := range o.planNodes() {
		dead[n.Name] = n.Dead()
	}
	for i := range o.nodes {
		n := &o.nodes[i]
		if dead[n.Name] {
			continue
		}
		s.Members = append(s.Members, r.member(o, n))
	}
	return s
}

func (r *Reconciler) member(o *observation, n *v1alpha1.ValkeyNode) announce.Member {
	m := announce.Member{
		Name: n.Name, ID: n.Status.NodeID, ShardIndex: n.Spec.ShardIndex, Exposed: n.Spec.External, Port: o.outsidePort(n),
		PodDNSName: objects.PodDNSName(n.Name, o.cluster.Name, o.cluster.Namespace, r.Reach.ClusterDomain),
	}
	if pod := o.pods[n.Name]; pod != nil {
		m.PodIP = pod.Status.PodIP
	}
	if a := n.Status.Applied; a != nil && a.Announcement != nil {
		v := announce.FromAnnouncement(*a.Announcement)
		m.Now = &v
	}
	if v, ok := o.outside.announced[n.Name]; ok {
		m.Now, m.Reachable = &v, true
	}
	if seen, ok := o.view.Nodes[n.Name]; ok && m.Reachable {
		m.ID = seen.ID
		m.Table = map[string]announce.Row{}
		for id, member := range seen.Knows {
			if !member.NoAddr {
				m.Table[id] = announce.Row{Hostname: member.Hostname, Port: int32(member.Port)}
			}
		}
	}
	return m
}

// outsidePort is where clients outside reach a node; 0 while they can't.
func (o *observation) outsidePort(n *v1alpha1.ValkeyNode) int32 {
	if o.outside.pending[n.Spec.ShardIndex] != "" {
		return 0
	}
	for _, e := range o.outside.endpoints {
		if e.ShardIndex == n.Spec.ShardIndex && int(n.Spec.NodeIndex) < len(e.Ports) {
			return e.Ports[n.Spec.NodeIndex]
		}
	}
	return 0
}

// withdraw says what is about to change of that which outside names lead to.
func (o *observation) withdraw() string {
	if !objects.ExternalEnabled(o.cluster) {
		return ""
	}
	want := objects.ExternalServiceType(o.cluster.Spec.ExternalAccess)
	for shard := range int32(len(o.nodesOfShards())) {
		if s := o.outside.services[shard]; s != nil && s.Spec.Type != want {
			return fmt.Sprintf("the type of the Services changes from %s to %s", s.Spec.Type, want)
		}
	}
	return o.withdrawRoutes()
}

// unexposed says, while clients are directed to names, of which shards they can't
// reach every node.
func (o *observation) unexposed() map[int32]string {
	x := &o.outside
	if !x.inPlay || !x.situation.InForce() {
		return nil
	}
	out := map[int32]string{}
	for _, m := range x.situation.Members {
		if m.Now == nil || m.Now.ClientPort == 0 {
			out[m.ShardIndex] = fmt.Sprintf("node %s does not announce its outside name yet", m.Name)
		}
	}
	maps.Copy(out, x.pending)
	return out
}

// routed is how long a port may still be refused after its pod became ready or got its
// label: kube-proxy gathers changes for a second.
const routed = 3 * time.Second

// unrouted says, while clients are directed to names, at the port of which shards'
// primaries nobody answers yet: Services lead to pods that are ready, and a new primary
// is with its first slot.
func (o *observation) unrouted() map[int32]string {
	if !o.outside.inPlay || !o.outside.situation.InForce() {
		return nil
	}
	out := map[int32]string{}
	for i := range o.nodes {
		n := &o.nodes[i]
		pod, v := o.pods[n.Name], o.view.Nodes[n.Name]
		if !n.Spec.External || pod == nil || v == nil || !v.Reachable || v.Role != topology.RolePrimary {
			continue
		}
		switch {
		case !ready(pod):
			out[n.Spec.ShardIndex] = fmt.Sprintf("pod %s is not ready", n.Name)
		case o.open[n.Name] < routed:
			out[n.Spec.ShardIndex] = fmt.Sprintf("pod %s has just become ready", n.Name)
		}
	}
	return out
}

// ending are, by shard and while clients are directed to names, pods of nodes that were
// replaced and whose servers may still run. One of which nothing is heard beyond its
// grace period is given up: its Kubernetes node is gone.
func (o *observation) ending() map[int32]string {
	if !o.outside.situation.InForce() {
		return nil
	}
	out := map[int32]string{}
	for name, pod := range o.former {
		shard, err := objects.ShardOf(pod.Labels)
		over := pod.DeletionTimestamp.IsZero() || o.now.After(pod.DeletionTimestamp.Time) || plan.PhaseOf(pod, true) == plan.PodTerminated
		if err == nil && !over {
			out[shard] = max(out[shard], name) // one of them, always the same
		}
	}
	return out
}

// labelled reports whether a pod's port outside is to lead to it.
func labelled(pod *corev1.Pod) bool {
	return pod != nil && pod.Labels[v1alpha1.LabelExternal] == objects.ExternalLabelValue
}

// opened returns for how long the port outside has led to a node that is ready.
func (r *Reconciler) opened(o *observation, name string) time.Duration {
	pod := o.pods[name]
	return r.moments.since(client.ObjectKeyFromObject(o.cluster), "open "+name, labelled(pod) && ready(pod), o.now)
}

// external is what the planner needs to know of a node's port outside.
func (o *observation) external(n *v1alpha1.ValkeyNode, pod *corev1.Pod) plan.External {
	return plan.External{
		Exposed:  n.Spec.External && o.exposing(),
		Labelled: labelled(pod),
		Opening:  o.outside.situation.InForce() && o.open[n.Name] < routed,
	}
}

// problemOf puts a conflict into the words of a condition.
func problemOf(err error) settings.Problem {
	if text, ok := asConflict(err); ok {
		return settings.Problem{Reason: v1alpha1.ReasonNameConflict, Message: text}
	}
	return settings.Problem{Reason: v1alpha1.ReasonStepFailed, Message: err.Error()}
}

// waiting reports whether something is still to come that only another look shows.
func (x outside) waiting(out outsideOutcome) bool {
	return x.inPlay && (!x.step.Done() || len(x.pending) > 0 || out.moving || len(out.unlisted) > 0)
}
