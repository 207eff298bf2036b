//go:build api

package manifests

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

var (
	reading = []string{"get", "list", "watch"}
	writing = []string{"create", "update", "patch", "delete"}
)

// The roles are tried alone; that Kubernetes adds them to view, edit and admin is
// said by their labels.
func TestTenantRoles(t *testing.T) {
	for _, role := range []struct {
		name  string
		may   map[string][]string
		mayNo map[string][]string
	}{
		{
			name:  "valkey-view",
			may:   map[string][]string{"valkeyclusters": reading, "valkeynodes": reading},
			mayNo: map[string][]string{"valkeyclusters": writing, "valkeynodes": writing},
		},
		{
			name: "valkey-edit",
			may:  map[string][]string{"valkeyclusters": writing, "valkeyclusters/scale": {"update", "patch"}},
			// A status or a node that somebody else wrote would mislead the manager.
			mayNo: map[string][]string{"valkeyclusters/status": writing, "valkeynodes": writing, "valkeyconfigs": writing},
		},
	} {
		t.Run(role.name, func(t *testing.T) {
			namespace := server.Namespace(t)
			user := "user-of-" + role.name
			bind(t, namespace, user, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.name})
			expectAccess(t, user, namespace, role.may, true)
			expectAccess(t, user, namespace, role.mayNo, false)
		})
	}
}

// split takes a resource apart from its subresource.
func split(resource string) (string, string) {
	name, subresource, _ := strings.Cut(resource, "/")
	return name, subresource
}

func expectAccess(t *testing.T, user, namespace string, requests map[string][]string, want bool) {
	t.Helper()
	for resource, verbs := range requests {
		for _, verb := range verbs {
			request := authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.Group, Namespace: namespace}
			request.Resource, request.Subresource = split(resource)
			if allowed(t, user, nil, request) != want {
				t.Errorf("may %s %s is %t, want %t", verb, resource, !want, want)
			}
		}
	}
}

func TestTenantRolesAreAggregated(t *testing.T) {
	objects := harness.Objects(t, harness.DeployPath(t, "install.yaml"))
	for name, into := range map[string][]string{
		"valkey-view":      {"view", "edit", "admin"},
		"valkey-edit":      {"edit", "admin"},
		"valkey-menu-view": {},
	} {
		labels := harness.Find[rbacv1.ClusterRole](t, objects, "ClusterRole", name).Labels
		for _, target := range []string{"view", "edit", "admin"} {
			got := labels["rbac.authorization.k8s.io/aggregate-to-"+target] == "true"
			if want := slices.Contains(into, target); got != want {
				t.Errorf("%s is aggregated to %s: %t, want %t", name, target, got, want)
			}
		}
	}
}
