package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// resources are all kinds that commands use. The mapping is fixed rather than
// discovered: discovery costs a dozen requests, and asks for more than the
// namespace that the user named.
var resources = []struct {
	gvk    schema.GroupVersionKind
	plural string
	scope  meta.RESTScope
}{
	{v1alpha1.GroupVersion.WithKind("ValkeyCluster"), "valkeyclusters", meta.RESTScopeNamespace},
	{v1alpha1.GroupVersion.WithKind("ValkeyNode"), "valkeynodes", meta.RESTScopeNamespace},
	{v1alpha1.GroupVersion.WithKind("ValkeyConfig"), "valkeyconfigs", meta.RESTScopeRoot},
	{v1alpha1.GroupVersion.WithKind("ValkeyImage"), "valkeyimages", meta.RESTScopeRoot},
	{v1alpha1.GroupVersion.WithKind("ValkeyRole"), "valkeyroles", meta.RESTScopeRoot},
	{corev1.SchemeGroupVersion.WithKind("Pod"), "pods", meta.RESTScopeNamespace},
	{corev1.SchemeGroupVersion.WithKind("Event"), "events", meta.RESTScopeNamespace},
	{corev1.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps", meta.RESTScopeNamespace},
	{corev1.SchemeGroupVersion.WithKind("Secret"), "secrets", meta.RESTScopeNamespace},
	{corev1.SchemeGroupVersion.WithKind("Service"), "services", meta.RESTScopeNamespace},
	{corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", meta.RESTScopeRoot},
	{corev1.SchemeGroupVersion.WithKind("Node"), "nodes", meta.RESTScopeRoot},
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", meta.RESTScopeNamespace},
	{coordinationv1.SchemeGroupVersion.WithKind("Lease"), "leases", meta.RESTScopeNamespace},
	{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), "networkpolicies", meta.RESTScopeNamespace},
	{discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), "endpointslices", meta.RESTScopeNamespace},
	{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "serviceaccounts", meta.RESTScopeNamespace},
	{rbacv1.SchemeGroupVersion.WithKind("Role"), "roles", meta.RESTScopeNamespace},
	{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "rolebindings", meta.RESTScopeNamespace},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), "clusterroles", meta.RESTScopeRoot},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), "clusterrolebindings", meta.RESTScopeRoot},
	{apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), "customresourcedefinitions", meta.RESTScopeRoot},
	{schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), "priorityclasses", meta.RESTScopeRoot},
}

// NewScheme returns a scheme with the kinds that commands use.
func NewScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(appsv1.AddToScheme(s))
	utilruntime.Must(coordinationv1.AddToScheme(s))
	utilruntime.Must(networkingv1.AddToScheme(s))
	utilruntime.Must(rbacv1.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(discoveryv1.AddToScheme(s))
	utilruntime.Must(schedulingv1.AddToScheme(s))
	return s
}

// NewMapper returns the fixed mapping from kinds to resources.
func NewMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, r := range resources {
		gv := r.gvk.GroupVersion()
		m.AddSpecific(r.gvk, gv.WithResource(r.plural), gv.WithResource(r.plural), r.scope)
	}
	return m
}
