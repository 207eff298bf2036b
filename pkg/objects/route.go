package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// TCPRoute leads from the listener of a node's place to the node's port of its shard's
// Service, and to nothing else: a client has to reach the very node that a redirect
// names. Its versions v1 and v1alpha2 differ in no field that is used here.
func TCPRoute(cluster *v1alpha1.ValkeyCluster, at Place) *gatewayv1.TCPRoute {
	external := cluster.Spec.ExternalAccess
	ref := external.Gateway.GatewayRef
	parent := gatewayv1.ParentReference{
		Name: gatewayv1.ObjectName(ref.Name),
		Port: ptr.To(GatewayPort(external, cluster.Spec.ReplicasPerShard, at)),
	}
	if ref.Namespace != "" && ref.Namespace != cluster.Namespace {
		parent.Namespace = ptr.To(gatewayv1.Namespace(ref.Namespace))
	}
	backend := gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
		Name: gatewayv1.ObjectName(ShardServiceName(cluster.Name, at.Shard)), Port: ptr.To(ExternalPort(at.Index)),
	}}
	return &gatewayv1.TCPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "TCPRoute"},
		ObjectMeta: clusterMeta(cluster, RouteName(cluster.Name, at), ShardLabels(cluster.Name, at.Shard)),
		Spec: gatewayv1.TCPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{parent}},
			Rules:           []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backend}}},
		},
	}
}

// SameRoute reports whether a live route leads where it is to. Defaults of the API
// server are no difference.
func SameRoute(live, want *gatewayv1.TCPRoute) bool {
	if len(live.Spec.ParentRefs) != 1 || len(live.Spec.Rules) != 1 || len(live.Spec.Rules[0].BackendRefs) != 1 {
		return false
	}
	a, b := live.Spec.ParentRefs[0], want.Spec.ParentRefs[0]
	from, to := live.Spec.Rules[0].BackendRefs[0], want.Spec.Rules[0].BackendRefs[0]
	return a.Name == b.Name && ptr.Equal(a.Port, b.Port) && ptr.Equal(a.Namespace, b.Namespace) && a.SectionName == nil &&
		from.Name == to.Name && ptr.Equal(from.Port, to.Port) && from.Namespace == nil
}

// StateOfRoute reads what a Gateway has made of a route.
func StateOfRoute(route *gatewayv1.TCPRoute) RouteState {
	state := RouteState{Why: "no Gateway has taken notice of it"}
	if len(route.Spec.ParentRefs) != 1 {
		return state
	}
	parent := route.Spec.ParentRefs[0]
	state.Port = ptr.Deref(parent.Port, 0)
	for _, p := range route.Status.Parents {
		if p.ParentRef.Name != parent.Name || p.ParentRef.Port != nil && !ptr.Equal(p.ParentRef.Port, parent.Port) {
			continue
		}
		for _, kind := range []string{string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs)} {
			c := meta.FindStatusCondition(p.Conditions, kind)
			switch {
			case c == nil && kind == string(gatewayv1.RouteConditionResolvedRefs):
			case c == nil || c.ObservedGeneration < route.Generation:
				return state
			case c.Status != metav1.ConditionTrue:
				state.Why = fmt.Sprintf("%s: %s", c.Reason, c.Message)
				return state
			}
		}
		state.Accepted, state.Why = true, ""
		return state
	}
	return state
}
