// Package reach is how the manager's controllers get to the servers of a cluster:
// the system passwords, the certificates that are trusted, the nodes that run and
// their addresses. It reads; what is written is the controllers' business.
package reach

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// Reach reads what it takes to talk to servers. All controllers share one.
type Reach struct {
	// Metadata reads from the cache what is known of Secrets, none of their data.
	Metadata client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Dialer connects to servers.
	Dialer valkey.Dialer
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string

	mu      sync.Mutex
	secrets map[types.NamespacedName]*corev1.Secret
}

// SecretMetadata is the object by which Secrets are watched and looked up: the
// manager's cache holds no Secret's data.
func SecretMetadata(namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
}

// Secret returns a Secret that a cluster names or owns. It is kept for as long as
// its version stays the same, or every pass would read it from the API server. The
// caller must not change it.
func (r *Reach) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	meta := SecretMetadata(namespace, name)
	if err := r.Metadata.Get(ctx, key, meta); err == nil {
		if kept := r.kept(key); kept != nil && kept.UID == meta.UID && kept.ResourceVersion == meta.ResourceVersion {
			return kept, nil
		}
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			r.keep(key, nil)
		}
		return nil, err
	}
	r.keep(key, secret)
	return secret, nil
}

// Wrote tells of a Secret that was just written: the cache may not know it yet.
func (r *Reach) Wrote(secret *corev1.Secret) {
	r.keep(client.ObjectKeyFromObject(secret), secret)
}

func (r *Reach) kept(key types.NamespacedName) *corev1.Secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.secrets[key]
}

func (r *Reach) keep(key types.NamespacedName, secret *corev1.Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if secret == nil {
		delete(r.secrets, key)
		return
	}
	if r.secrets == nil {
		r.secrets = map[types.NamespacedName]*corev1.Secret{}
	}
	r.secrets[key] = secret
}

// Forget drops the Secrets that were kept for a cluster that is gone. Another
// cluster that uses one reads it again.
func (r *Reach) Forget(cluster types.NamespacedName) {
	for _, name := range []string{objects.AuthSecretName(cluster.Name), objects.TLSSecretName(cluster.Name)} {
		r.keep(types.NamespacedName{Namespace: cluster.Namespace, Name: name}, nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, secret := range r.secrets {
		if key.Namespace == cluster.Namespace && secret.Type == corev1.SecretTypeTLS {
			delete(r.secrets, key)
		}
	}
}

// AuthSecret returns the Secret with the cluster's system passwords.
func (r *Reach) AuthSecret(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (*corev1.Secret, error) {
	name := objects.AuthSecretName(cluster.Name)
	secret, err := r.Secret(ctx, cluster.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the Secret %s with the system passwords is gone: restore it, the servers know no others", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s with the system passwords: %w", name, err)
	}
	return secret, Owned(cluster, secret)
}

// Passwords returns the cluster's system passwords.
func (r *Reach) Passwords(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (objects.Passwords, error) {
	secret, err := r.AuthSecret(ctx, cluster)
	if err != nil {
		return objects.Passwords{}, err
	}
	return objects.PasswordsOf(secret)
}

// Credentials of the manager's own user.
func (r *Reach) Credentials(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (valkey.Credentials, error) {
	p, err := r.Passwords(ctx, cluster)
	if err != nil {
		return valkey.Credentials{}, err
	}
	return valkey.Credentials{Username: acl.OperatorUser, Password: p.Operator}, nil
}

// ConflictError is an object that has a name which the cluster needs and that is
// not the cluster's: it is never overwritten.
type ConflictError struct {
	Message string
}

func (e *ConflictError) Error() string { return e.Message }

// Owned returns a ConflictError that says whose an object is if it is not the
// cluster's.
func Owned(cluster *v1alpha1.ValkeyCluster, obj client.Object) error {
	if metav1.IsControlledBy(obj, cluster) {
		return nil
	}
	kind := objects.KindOf(obj)
	if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == "ValkeyCluster" && owner.Name == cluster.Name {
		return &ConflictError{fmt.Sprintf("%s %s still belongs to a former cluster of this name; waiting until it is deleted", kind, obj.GetName())}
	}
	return &ConflictError{fmt.Sprintf("%s %s exists and does not belong to this cluster; delete or rename it, or choose another cluster name", kind, obj.GetName())}
}
