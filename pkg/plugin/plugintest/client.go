package plugintest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

// Client serves objects from memory.
func Client(objs ...client.Object) client.WithWatch {
	// The fake selects among what it is asked to return, which may be metadata
	// alone.
	types := map[client.ObjectKey]string{}
	for _, o := range objs {
		if secret, ok := o.(*corev1.Secret); ok {
			types[client.ObjectKeyFromObject(o)] = string(secret.Type)
		}
	}
	return fake.NewClientBuilder().
		WithScheme(kube.NewScheme()).
		WithRESTMapper(kube.NewMapper()).
		WithStatusSubresource(&v1alpha1.ValkeyCluster{}, &v1alpha1.ValkeyNode{}).
		WithIndex(&v1alpha1.ValkeyCluster{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&corev1.Secret{}, "type", func(o client.Object) []string {
			return []string{types[client.ObjectKeyFromObject(o)]}
		}).
		WithObjects(objs...).
		Build()
}

// Forbidden is the API server's refusal of a request.
func Forbidden(verb, resource, namespace string) error {
	where := "at the cluster scope"
	if namespace != "" {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "",
		errors.New(`User "eve" cannot `+verb+` resource "`+resource+`" `+where))
}

// Kubeconfig points KUBECONFIG at an empty file, so that a test can't find its
// way to a real cluster.
func Kubeconfig(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
}
