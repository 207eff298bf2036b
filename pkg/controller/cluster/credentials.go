package cluster

import (
	"context"
	"fmt"
	"slices"
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

// credentialCache keeps the system passwords of each cluster for as long as its
// auth Secret has the same version. Secrets are cached by metadata only; without
// this every pass would read one from the API server.
type credentialCache struct {
	mu    sync.Mutex
	byUID map[types.UID]cachedCredentials
}

type cachedCredentials struct {
	version   string
	passwords objects.Passwords
}

func newCredentialCache() *credentialCache {
	return &credentialCache{byUID: map[types.UID]cachedCredentials{}}
}

func (c *credentialCache) get(uid types.UID, version string) (objects.Passwords, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hit, ok := c.byUID[uid]
	return hit.passwords, ok && hit.version == version
}

func (c *credentialCache) put(uid types.UID, version string, p objects.Passwords) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byUID[uid] = cachedCredentials{version: version, passwords: p}
}

// secretMetadata is the object by which Secrets are watched and looked up: the
// manager holds no Secret's data in its cache.
func secretMetadata(namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
}

// auth returns the cluster's system passwords.
func (r *Reconciler) auth(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (objects.Passwords, error) {
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: objects.AuthSecretName(cluster.Name)}
	meta := secretMetadata(key.Namespace, key.Name)
	if err := r.Metadata.Get(ctx, key, meta); err == nil {
		if p, ok := r.creds.get(cluster.UID, meta.ResourceVersion); ok {
			return p, nil
		}
	}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return objects.Passwords{}, fmt.Errorf("the Secret %s with the system passwords is gone: restore it, the servers know no others", key.Name)
	}
	if err != nil {
		return objects.Passwords{}, fmt.Errorf("read Secret %s with the system passwords: %w", key.Name, err)
	}
	if err := owned(cluster, secret); err != nil {
		return objects.Passwords{}, err
	}
	p, err := objects.PasswordsOf(secret)
	if err != nil {
		return objects.Passwords{}, err
	}
	r.creds.put(cluster.UID, secret.ResourceVersion, p)
	return p, nil
}

func (r *Reconciler) operatorCredentials(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (valkey.Credentials, error) {
	p, err := r.auth(ctx, cluster)
	if err != nil {
		return valkey.Credentials{}, err
	}
	return valkey.Credentials{Username: acl.OperatorUser, Password: p.Operator}, nil
}

// aclInput is what the ACL file is rendered from.
func (c configuration) aclInput(cluster *v1alpha1.ValkeyCluster, p objects.Passwords) acl.Input {
	return acl.Input{
		Bindings: slices.Concat(c.ACL, cluster.Spec.ACL), Roles: c.roles,
		OperatorHashes:    []string{acl.Hash(p.Operator)},
		ReplicationHashes: []string{acl.Hash(p.Replication)},
	}
}
