// Package inspect knows how a cluster looks from outside: it fetches what belongs
// to one cluster into a plain Snapshot, in which every part carries its own
// error, and draws conclusions from it with pure functions. Commands only show
// them.
package inspect

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/feed"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

// Part is one kind of object of a snapshot. When it can't be read, Err says why,
// and the rest of the snapshot is there all the same.
type Part[T any] struct {
	Items []T
	Err   error
}

// Snapshot is what could be read of one cluster at one moment.
type Snapshot struct {
	// Cluster itself; there is no snapshot without it.
	Cluster *v1alpha1.ValkeyCluster
	// Nodes of the cluster, those on their way in and out included.
	Nodes Part[v1alpha1.ValkeyNode]
	// Pods of the cluster.
	Pods Part[corev1.Pod]
	// Events about the cluster, its nodes and its pods.
	Events Part[corev1.Event]
	// Users says who may log in.
	Users Users
	// Menu is what the cluster's config resolves to. It is outside the
	// cluster's namespace, so it is read only when asked for.
	Menu *Menu
	// Zones of Kubernetes nodes by name. Since Kubernetes 1.35 pods carry their
	// zone; this part is read only when asked for, and only when they don't.
	Zones map[string]string
	// ManagerSilent says that no manager seems to be at work; see ManagerSilence.
	ManagerSilent string
	// ZonesErr is why the zones could not be read.
	ZonesErr error
}

// Scope says how far a fetch may look.
type Scope bool

const (
	// Namespaced asks for nothing outside the cluster's namespace.
	Namespaced Scope = false
	// ClusterWide also reads the menu (configs, images, roles) and the zones of
	// Kubernetes nodes.
	ClusterWide Scope = true
)

// Sources are what a feed has to follow so that Fetch, reading from it, always
// sees the present.
func Sources(namespace, name string) []feed.Source {
	return []feed.Source{
		{List: &v1alpha1.ValkeyClusterList{}, Resource: "valkeyclusters", Options: []client.ListOption{
			client.InNamespace(namespace),
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)},
		}},
		{List: &v1alpha1.ValkeyNodeList{}, Resource: "valkeynodes", Options: []client.ListOption{client.InNamespace(namespace)}},
		{List: &corev1.PodList{}, Resource: "pods", Options: podOptions(namespace, name)},
		{List: &corev1.EventList{}, Resource: "events", Options: []client.ListOption{client.InNamespace(namespace)}},
	}
}

func podOptions(namespace, name string) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(namespace),
		client.MatchingLabels{v1alpha1.LabelName: v1alpha1.ApplicationName, v1alpha1.LabelInstance: name},
	}
}

// Fetch reads the cluster with its nodes, pods and events. It fails only when the
// cluster itself can't be read.
func Fetch(ctx context.Context, r client.Reader, namespace, name string) (*Snapshot, error) {
	s := &Snapshot{Cluster: &v1alpha1.ValkeyCluster{}}
	err := kube.Get(ctx, r, client.ObjectKey{Namespace: namespace, Name: name}, s.Cluster, "valkeyclusters")
	switch {
	case apierrors.IsNotFound(err) && !kube.NotInstalled(err):
		return nil, notFound(ctx, r, namespace, name, err)
	case err != nil:
		return nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.Nodes = fetchNodes(ctx, r, namespace, name) })
	wg.Go(func() { s.Pods = fetchPods(ctx, r, namespace, name) })
	wg.Go(func() { s.Events = fetchEvents(ctx, r, namespace, name) })
	wg.Wait()
	// A part that an interrupt cut off is no reason to show the rest.
	return s, ctx.Err()
}

// Surroundings adds what is known of the cluster beyond its own objects: who may
// use it and, if scope allows to look there, its menu and zones.
func (s *Snapshot) Surroundings(ctx context.Context, r client.Reader, scope Scope) {
	s.Users, s.Menu = fetchUsers(ctx, r, s.Cluster, scope)
	if scope == ClusterWide {
		s.Zones, s.ZonesErr = fetchZones(ctx, r, s.Pods.Items)
	}
}

// notFound adds which clusters there are.
func notFound(ctx context.Context, r client.Reader, namespace, name string, err error) error {
	var list v1alpha1.ValkeyClusterList
	hint := "there is none in it; kubectl valkey status -A shows those of all namespaces"
	if r.List(ctx, &list, client.InNamespace(namespace)) != nil {
		hint = "kubectl valkey status shows those that exist"
	} else if len(list.Items) > 0 {
		names := make([]string, len(list.Items))
		for i := range list.Items {
			names[i] = list.Items[i].Name
		}
		hint = "it has " + strings.Join(names, ", ")
	}
	return &missing{sentence: fmt.Sprintf("cluster %q not found in namespace %s: %s", name, namespace, hint), err: err}
}

// missing keeps the error, so that apierrors.IsNotFound holds.
type missing struct {
	sentence string
	err      error
}

func (m *missing) Error() string { return m.sentence }
func (m *missing) Unwrap() error { return m.err }

func fetchNodes(ctx context.Context, r client.Reader, namespace, name string) Part[v1alpha1.ValkeyNode] {
	var list v1alpha1.ValkeyNodeList
	if err := kube.List(ctx, r, &list, "valkeynodes", client.InNamespace(namespace)); err != nil {
		return Part[v1alpha1.ValkeyNode]{Err: err}
	}
	var part Part[v1alpha1.ValkeyNode]
	for _, n := range list.Items {
		if n.Spec.ClusterName == name {
			part.Items = append(part.Items, n)
		}
	}
	return part
}

func fetchPods(ctx context.Context, r client.Reader, namespace, name string) Part[corev1.Pod] {
	var list corev1.PodList
	err := kube.List(ctx, r, &list, "pods", podOptions(namespace, name)...)
	return Part[corev1.Pod]{Items: list.Items, Err: err}
}

// fetchEvents reads the namespace's events at once: a field selector takes one
// object only, and a cluster has many.
func fetchEvents(ctx context.Context, r client.Reader, namespace, name string) Part[corev1.Event] {
	var list corev1.EventList
	if err := kube.List(ctx, r, &list, "events", client.InNamespace(namespace)); err != nil {
		return Part[corev1.Event]{Err: err}
	}
	var part Part[corev1.Event]
	for _, e := range list.Items {
		if concerns(e.InvolvedObject, name) {
			part.Items = append(part.Items, e)
		}
	}
	return part
}

// concerns is whether an object is the cluster, or one of its nodes or pods,
// those that are gone included.
func concerns(o corev1.ObjectReference, cluster string) bool {
	switch o.Kind {
	case "ValkeyCluster":
		return o.Name == cluster
	case "ValkeyNode", "Pod":
		suffix, ok := strings.CutPrefix(o.Name, cluster+"-")
		return ok && len(suffix) == 5 && strings.Trim(suffix, "0123456789abcdef") == ""
	}
	return false
}

// fetchZones asks for the zones of Kubernetes nodes if a pod doesn't carry its
// own.
func fetchZones(ctx context.Context, r client.Reader, pods []corev1.Pod) (map[string]string, error) {
	needed := false
	for i := range pods {
		needed = needed || pods[i].Spec.NodeName != "" && pods[i].Labels[corev1.LabelTopologyZone] == ""
	}
	if !needed {
		return nil, nil
	}
	var list corev1.NodeList
	if err := kube.List(ctx, r, &list, "nodes"); err != nil {
		return nil, err
	}
	zones := map[string]string{}
	for i := range list.Items {
		zones[list.Items[i].Name] = list.Items[i].Labels[corev1.LabelTopologyZone]
	}
	return zones, nil
}
