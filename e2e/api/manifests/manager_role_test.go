//go:build api

package manifests

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// With OwnerReferencesPermissionEnforcement an owner reference that blocks the
// deletion of its owner needs leave to update the owner's finalizers (M-01).
func TestManagerMayOwnWhatItCreates(t *testing.T) {
	manager := server.ClientFor(t, server.ManagerConfig())
	cluster := newCluster(t)
	node := newNode(cluster)
	own(t, cluster, node)
	if err := manager.Create(t.Context(), node); err != nil {
		t.Fatalf("create a node that the cluster owns: %v", err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: node.Name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "valkey", Image: "valkey/valkey:9.1.2"}}},
	}
	own(t, node, pod)
	if err := manager.Create(t.Context(), pod); err != nil {
		t.Fatalf("create a pod that the node owns: %v", err)
	}
	for _, e := range server.AuditEvents(t) {
		if e.Verb == "create" && e.ObjectRef != nil && e.ObjectRef.Resource == "valkeynodes" && e.ObjectRef.Namespace == cluster.Namespace {
			if identity := server.ManagerConfig().Impersonate.UserName; e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != identity || e.ResponseStatus.Code != http.StatusCreated {
				t.Errorf("the audit log has %+v, want a success of %s", e, identity)
			}
			return
		}
	}
	t.Error("the audit log doesn't show the node's creation")
}

func TestOwningWithoutLeaveToUpdateFinalizersIsRefused(t *testing.T) {
	cluster := newCluster(t)
	grant(t, cluster.Namespace, "owner", rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.Group}, Resources: []string{"valkeynodes"}, Verbs: []string{"create", "delete"},
	})
	node := newNode(cluster)
	own(t, cluster, node)
	err := server.ClientFor(t, server.As("owner")).Create(t.Context(), node)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "blockOwnerDeletion") {
		t.Fatalf("got %v, want a refusal for blockOwnerDeletion: the admission plugin is off and the test above proves nothing", err)
	}
}

// What the manager must never do, so that a bug in it can't.
func TestManagerMayNot(t *testing.T) {
	for _, request := range []authorizationv1.ResourceAttributes{
		{Verb: "patch", Group: v1alpha1.Group, Resource: "valkeyclusters"},
		{Verb: "update", Group: v1alpha1.Group, Resource: "valkeyclusters"},
		{Verb: "delete", Group: v1alpha1.Group, Resource: "valkeyclusters"},
		{Verb: "patch", Group: v1alpha1.Group, Resource: "valkeyconfigs"},
		{Verb: "create", Group: v1alpha1.Group, Resource: "valkeyimages"},
		{Verb: "delete", Group: v1alpha1.Group, Resource: "valkeyroles"},
		{Verb: "delete", Resource: "secrets"},
		{Verb: "create", Resource: "pods", Subresource: "exec"},
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
		{Verb: "update", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
		{Verb: "create", Group: "networking.k8s.io", Resource: "networkpolicies"},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system"},
	} {
		t.Run(strings.Join([]string{request.Verb, request.Resource, request.Subresource}, " "), func(t *testing.T) {
			if allowed(t, server.ManagerConfig().Impersonate.UserName, server.ManagerConfig().Impersonate.Groups, request) {
				t.Errorf("the manager may %s %s in %q", request.Verb, request.Resource, request.Namespace)
			}
		})
	}
}

func TestManagerMayHoldItsLease(t *testing.T) {
	identity := server.ManagerConfig().Impersonate
	for _, verb := range []string{"get", "create", "update"} {
		request := authorizationv1.ResourceAttributes{
			Verb: verb, Group: "coordination.k8s.io", Resource: "leases", Namespace: harness.ManagerNamespace,
		}
		if !allowed(t, identity.UserName, identity.Groups, request) {
			t.Errorf("the manager may not %s its lease", verb)
		}
	}
}

func TestNoRoleOfTheManagerHasAWildcard(t *testing.T) {
	check := func(name string, rules []rbacv1.PolicyRule) {
		for _, r := range rules {
			if slices.Contains(slices.Concat(r.APIGroups, r.Resources, r.Verbs), "*") {
				t.Errorf("%s holds a wildcard: %v", name, r)
			}
		}
	}
	objects := harness.Objects(t, harness.DeployPath(t, "install.yaml"))
	for _, name := range []string{"valkey-operator", "valkey-view", "valkey-edit", "valkey-menu-view"} {
		check(name, harness.Find[rbacv1.ClusterRole](t, objects, "ClusterRole", name).Rules)
	}
	role := harness.Find[rbacv1.Role](t, objects, "Role", "valkey-operator-leader-election")
	check(role.Name, role.Rules)
}

func newCluster(t *testing.T) *v1alpha1.ValkeyCluster {
	t.Helper()
	cluster := &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t), Name: "cache"},
		Spec:       v1alpha1.ValkeyClusterSpec{ConfigRef: "standard", Shards: 1},
	}
	if err := server.Client.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func newNode(cluster *v1alpha1.ValkeyCluster) *v1alpha1.ValkeyNode {
	return &v1alpha1.ValkeyNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name + "-0a1b2"},
		Spec:       v1alpha1.ValkeyNodeSpec{ClusterName: cluster.Name, Image: "valkey/valkey:9.1.2", Lifecycle: v1alpha1.LifecycleJoining},
	}
}

func own(t *testing.T, owner, owned client.Object) {
	t.Helper()
	if err := controllerutil.SetControllerReference(owner, owned, harness.Scheme()); err != nil {
		t.Fatal(err)
	}
}

// grant gives a user rules in one namespace.
func grant(t *testing.T, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: rules}
	if err := server.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	bind(t, namespace, user, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user})
}

func bind(t *testing.T, namespace, user string, role rbacv1.RoleRef) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: user + "-"},
		RoleRef:    role,
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := server.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// allowed asks the API server's authorizer.
func allowed(t *testing.T, user string, groups []string, request authorizationv1.ResourceAttributes) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &request},
	}
	if err := server.Client.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}
