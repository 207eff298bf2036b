//go:build api

package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// routeCRD is the real definition of TCPRoutes, with the versions named served.
func routeCRD(t *testing.T, served ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatalf("find the Gateway API's definitions: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "experimental", "gateway.networking.k8s.io_tcproutes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		v.Served = false
		for _, name := range served {
			v.Served = v.Served || v.Name == name
		}
	}
	return crd
}

// installRoutes installs TCPRoutes until the test ends.
func installRoutes(t *testing.T, served ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := routeCRD(t, served...)
	if err := server.Client.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeRoutes(t, crd) })
	return crd
}

func removeRoutes(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := client.IgnoreNotFound(server.Client.Delete(ctx, crd)); err != nil {
		t.Error(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		err := server.Client.Get(ctx, client.ObjectKeyFromObject(crd), &apiextensionsv1.CustomResourceDefinition{})
		if apierrors.IsNotFound(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("TCPRoutes are still there: %v", err)
		}
	}
}

// notice waits until the manager's discovery says what is served.
func (p *place) notice(version string) {
	p.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		p.gateway.forget()
		got, err := p.gateway.served(time.Now())
		if err == nil && got == version {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("TCPRoute is served as %q, %v; want %q", got, err, version)
		}
	}
}

func (p *place) routeList(version string) []gatewayv1.TCPRoute {
	p.Helper()
	list, err := p.admin().routes(version, p.cluster.Namespace).List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	var out []gatewayv1.TCPRoute
	for i := range list.Items {
		var route gatewayv1.TCPRoute
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &route); err != nil {
			p.Fatal(err)
		}
		out = append(out, route)
	}
	return out
}

// admin does what a Gateway's controller does.
func (p *place) admin() *gatewayAPI {
	return &gatewayAPI{dynamic: dynamic.NewForConfigOrDie(server.Config)}
}

// accept says of every route that the Gateway has taken it, or why not.
func (p *place) accept(version string, status metav1.ConditionStatus, message string) {
	p.Helper()
	api := p.admin().routes(version, p.cluster.Namespace)
	list, err := api.List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	for i := range list.Items {
		item := &list.Items[i]
		parents := unstructuredParents(item.Object)
		item.Object["status"] = map[string]any{"parents": []any{map[string]any{
			"parentRef": parents[0], "controllerName": "example.com/gateway",
			"conditions": []any{map[string]any{
				"type": "Accepted", "status": string(status), "reason": "Tested", "message": message,
				"observedGeneration": item.GetGeneration(), "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339),
			}},
		}}}
		if _, err := api.UpdateStatus(p.Context(), item, metav1.UpdateOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

func unstructuredParents(object map[string]any) []any {
	spec, _ := object["spec"].(map[string]any)
	parents, _ := spec["parentRefs"].([]any)
	return parents
}

func gatewayAccess() v1alpha1.ExternalAccess {
	return v1alpha1.ExternalAccess{Domain: "valkey.example.com", Gateway: &v1alpha1.GatewayAccess{
		GatewayRef: v1alpha1.GatewayReference{Name: "public"}, BasePort: 30000,
	}}
}

// G-01, S1-44 to S1-53, S1-121, S1-126 to S1-128, S1-134: the kind comes, in either
// version, and goes while the manager runs.
func TestRoutesFollowTheGatewayAPIThatIsServed(t *testing.T) {
	p := newPlace(t, gatewayAccess())
	p.pass(2)
	p.wantCondition(v1alpha1.ReasonGatewayMissing, "install the Gateway API")
	if s := p.services(); len(s) != 3 || s["c-shard-0"].Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("Services %v", s)
	}
	for _, versions := range [][]string{{"v1alpha2"}, {"v1"}, {"v1", "v1alpha2"}} {
		crd := installRoutes(t, versions...)
		version := versions[0]
		p.notice(version)
		p.pass(2)
		p.wantRoutes(p.routeList(version))
		p.wantCondition(v1alpha1.ReasonExternalPending, "c-shard-0-0", "no Gateway has taken notice")
		p.accept(version, metav1.ConditionFalse, "no listener at that port")
		p.pass(1)
		p.wantCondition(v1alpha1.ReasonExternalPending, "not accepted by Gateway public", "no listener at that port")
		p.accept(version, metav1.ConditionTrue, "")
		p.pass(1)
		p.wantCondition(v1alpha1.ReasonExternalWaiting) // these nodes have no pods
		before := p.routeList(version)
		p.pass(2)
		for i, route := range p.routeList(version) {
			if route.ResourceVersion != before[i].ResourceVersion {
				t.Errorf("route %s was written again", route.Name)
			}
		}
		removeRoutes(t, crd)
		p.pass(1) // it may be gone in the middle of this
		p.notice("")
		p.pass(1)
		p.wantCondition(v1alpha1.ReasonGatewayMissing)
	}
}

// wantRoutes checks that every node has one route, to its own port.
func (p *place) wantRoutes(routes []gatewayv1.TCPRoute) {
	p.Helper()
	if len(routes) != 6 {
		p.Fatalf("%d routes", len(routes))
	}
	for i := range routes {
		at, ok := placeOf(p.cluster, &routes[i])
		if !ok || !objects.SameRoute(&routes[i], objects.TCPRoute(p.cluster, at)) {
			p.Errorf("route %+v of place %v", routes[i].Spec, at)
		}
		if backends := routes[i].Spec.Rules[0].BackendRefs; len(routes[i].Spec.Rules) != 1 || len(backends) != 1 || *backends[0].Port != 6379+at.Index {
			p.Errorf("route %s has rules %+v", routes[i].Name, routes[i].Spec.Rules)
		}
		if port := *routes[i].Spec.ParentRefs[0].Port; port != 30000+2*at.Shard+at.Index {
			p.Errorf("route %s is attached to port %d", routes[i].Name, port)
		}
	}
}

// Nothing is adopted by name, routes neither.
func TestARouteOfAnotherOwnerIsNeverTouched(t *testing.T) {
	p := newPlace(t, gatewayAccess())
	installRoutes(t, "v1")
	p.notice("v1")
	foreign := objects.TCPRoute(p.cluster, objects.Place{Shard: 1})
	foreign.OwnerReferences, foreign.Labels = nil, nil
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(foreign)
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	made, err := p.admin().routes("v1", p.cluster.Namespace).Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.pass(2)
	p.wantCondition(v1alpha1.ReasonNameConflict, "TCPRoute c-shard-1-0 exists and does not belong to this cluster")
	for _, route := range p.routeList("v1") {
		if route.Name == made.GetName() && route.ResourceVersion != made.GetResourceVersion() {
			t.Error("the foreign route was changed")
		}
	}
}

// S1-128
func TestRoutesGoWithTheGateway(t *testing.T) {
	p := newPlace(t, gatewayAccess())
	installRoutes(t, "v1")
	p.notice("v1")
	p.pass(2)
	p.wantRoutes(p.routeList("v1"))
	p.announceInside()
	p.edit(func(s *v1alpha1.ValkeyClusterSpec) { s.ExternalAccess.Gateway.BasePort = 31000 })
	p.pass(2)
	for _, route := range p.routeList("v1") {
		if *route.Spec.ParentRefs[0].Port < 31000 {
			t.Errorf("route %s is still attached to port %d", route.Name, *route.Spec.ParentRefs[0].Port)
		}
	}
	p.edit(func(s *v1alpha1.ValkeyClusterSpec) { s.ExternalAccess.Gateway = nil })
	p.pass(3)
	if routes := p.routeList("v1"); len(routes) > 0 {
		t.Errorf("%d routes are left", len(routes))
	}
	if s := p.services()["c-shard-0"]; s == nil || s.Spec.Type != corev1.ServiceTypeNodePort {
		t.Errorf("Service %+v", s)
	}
}
