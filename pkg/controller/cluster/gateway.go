package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

const (
	routeResource = "tcproutes"
	// discoveryAge is how long an answer of the API server is believed: its kinds may
	// come and go at any time.
	discoveryAge = 20 * time.Second
)

// routeVersions of the kind TCPRoute, the best first.
var routeVersions = []string{"v1", "v1alpha2"}

// gatewayAPI speaks of an optional kind: nothing of it is requested unless the API
// server says that it serves it. It is polled and not watched, since a watch of a
// kind that goes away never ends well.
type gatewayAPI struct {
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface

	mu      sync.Mutex
	version string
	asked   time.Time
}

// served returns the version of TCPRoute that the API server serves; empty for none.
func (g *gatewayAPI) served(now time.Time) (string, error) {
	if g == nil {
		return "", nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asked.IsZero() && now.Sub(g.asked) < discoveryAge {
		return g.version, nil
	}
	for _, version := range routeVersions {
		list, err := g.discovery.ServerResourcesForGroupVersion(gatewayv1.GroupName + "/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("ask the API server for the Gateway API: %w", err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == routeResource }) {
			g.version, g.asked = version, now
			return version, nil
		}
	}
	g.version, g.asked = "", now
	return "", nil
}

// forget makes the API server be asked again.
func (g *gatewayAPI) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = time.Time{}
}

func (g *gatewayAPI) routes(version, namespace string) dynamic.ResourceInterface {
	return g.dynamic.Resource(schema.GroupVersionResource{Group: gatewayv1.GroupName, Version: version, Resource: routeResource}).Namespace(namespace)
}

// observeGateway reads the cluster's routes and the Gateway that they attach to.
func (r *Reconciler) observeGateway(ctx context.Context, o *observation) (objects.GatewayState, error) {
	state := objects.GatewayState{Routes: map[objects.Place]objects.RouteState{}}
	o.outside.routes = map[objects.Place]*gatewayv1.TCPRoute{}
	version, err := r.gateway.served(o.now)
	if err != nil {
		return state, err
	}
	o.outside.routeVersion = version
	wished := objects.ExternalEnabled(o.cluster) && o.cluster.Spec.ExternalAccess.Gateway != nil
	if version == "" {
		if wished {
			state.Missing = "the API server has no TCPRoutes: install the Gateway API, which is noticed by itself"
		}
		return state, nil
	}
	list, err := r.gateway.routes(version, o.cluster.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set(objects.Labels(o.cluster.Name)).String()})
	if apierrors.IsNotFound(err) { // it went away since it was found
		r.gateway.forget()
		o.outside.routeVersion = ""
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("list TCPRoutes of cluster %s: %w", o.cluster.Name, err)
	}
	for i := range list.Items {
		route := &gatewayv1.TCPRoute{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, route); err != nil {
			return state, fmt.Errorf("read TCPRoute %s: %w", list.Items[i].GetName(), err)
		}
		if at, ok := placeOf(o.cluster, route); ok && route.DeletionTimestamp.IsZero() {
			o.outside.routes[at], state.Routes[at] = route, objects.StateOfRoute(route)
		}
	}
	if wished {
		state.Addresses, err = r.gatewayAddresses(ctx, o)
	}
	return state, err
}

// placeOf finds the place that a route of the cluster is for.
func placeOf(cluster *v1alpha1.ValkeyCluster, route *gatewayv1.TCPRoute) (objects.Place, bool) {
	if !metav1.IsControlledBy(route, cluster) {
		return objects.Place{}, false
	}
	shard, err := objects.ShardOf(route.Labels)
	if err != nil {
		return objects.Place{}, false
	}
	index, err := strconv.ParseInt(route.Name[strings.LastIndexByte(route.Name, '-')+1:], 10, 32)
	at := objects.Place{Shard: shard, Index: int32(index)}
	return at, err == nil && route.Name == objects.RouteName(cluster.Name, at)
}

// gatewayAddresses are those of the Gateway, as far as it is there and has any.
func (r *Reconciler) gatewayAddresses(ctx context.Context, o *observation) ([]string, error) {
	ref := o.cluster.Spec.ExternalAccess.Gateway.GatewayRef
	namespace := ref.Namespace
	if namespace == "" {
		namespace = o.cluster.Namespace
	}
	gvr := schema.GroupVersionResource{Group: gatewayv1.GroupName, Version: "v1", Resource: "gateways"}
	got, err := r.gateway.dynamic.Resource(gvr).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil // the routes say that nobody takes notice of them
	}
	if err != nil {
		return nil, fmt.Errorf("read Gateway %s/%s: %w", namespace, ref.Name, err)
	}
	gateway := &gatewayv1.Gateway{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, gateway); err != nil {
		return nil, fmt.Errorf("read Gateway %s/%s: %w", namespace, ref.Name, err)
	}
	var out []string
	for _, a := range gateway.Status.Addresses {
		out = append(out, a.Value)
	}
	return out, nil
}

// ensureRoutes makes, corrects and deletes routes. What clients are directed to stays
// until they are not.
func (r *Reconciler) ensureRoutes(ctx context.Context, o *observation) (bool, error) {
	if o.outside.routeVersion == "" {
		return false, nil
	}
	wanted := map[objects.Place]bool{}
	acted := false
	if objects.ExternalEnabled(o.cluster) && o.cluster.Spec.ExternalAccess.Gateway != nil {
		for shard, nodes := range o.nodesOfShards() {
			for index := range nodes {
				at := objects.Place{Shard: int32(shard), Index: index}
				wanted[at] = true
				did, err := r.ensureRoute(ctx, o, at)
				if acted = acted || did; err != nil {
					return acted, err
				}
			}
		}
	} else if !o.outside.withdrawn() {
		return false, nil
	}
	for at, route := range o.outside.routes {
		if wanted[at] {
			continue
		}
		err := r.gateway.routes(o.outside.routeVersion, route.Namespace).Delete(ctx, route.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &route.UID}})
		if client.IgnoreNotFound(err) != nil {
			return acted, fmt.Errorf("delete TCPRoute %s: %w", route.Name, err)
		}
		log.FromContext(ctx).Info("route deleted", "route", route.Name)
		acted = true
	}
	return acted, nil
}

func (r *Reconciler) ensureRoute(ctx context.Context, o *observation, at objects.Place) (bool, error) {
	want := objects.TCPRoute(o.cluster, at)
	want.APIVersion = gatewayv1.GroupName + "/" + o.outside.routeVersion
	api := r.gateway.routes(o.outside.routeVersion, want.Namespace)
	live := o.outside.routes[at]
	if live == nil {
		return r.createRoute(ctx, o, api, want)
	}
	if objects.SameRoute(live, want) || !o.outside.withdrawn() && o.withdrawRoutes() != "" {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": live.ResourceVersion}, "spec": want.Spec})
	if err != nil {
		return false, err
	}
	if _, err := api.Patch(ctx, want.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("update TCPRoute %s: %w", want.Name, err)
	}
	log.FromContext(ctx).Info("route updated", "route", want.Name)
	return true, nil
}

func (r *Reconciler) createRoute(ctx context.Context, o *observation, api dynamic.ResourceInterface, want *gatewayv1.TCPRoute) (bool, error) {
	if err := r.stillThere(ctx, o); err != nil {
		return false, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return false, err
	}
	delete(content, "status")
	_, err = api.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		list, err := api.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", want.Name).String()})
		if err != nil || len(list.Items) == 0 {
			return false, client.IgnoreNotFound(err)
		}
		return false, owned(o.cluster, &list.Items[0])
	}
	if err = gone(err); err != nil {
		return false, fmt.Errorf("create TCPRoute %s: %w", want.Name, err)
	}
	log.FromContext(ctx).Info("route created", "route", want.Name)
	return true, nil
}

// withdrawRoutes says what is about to change of the listeners that clients may be
// directed to.
func (o *observation) withdrawRoutes() string {
	external := o.cluster.Spec.ExternalAccess
	for at, route := range o.outside.gateway.Routes {
		if external.Gateway == nil {
			return "the Gateway is no longer wished"
		}
		if route.Port != objects.GatewayPort(external, o.cluster.Spec.ReplicasPerShard, at) {
			return "nodes get other listeners of the Gateway"
		}
	}
	return ""
}
