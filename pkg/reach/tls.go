package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// Wish is what the TLS Secret of a cluster holds, checked.
type Wish struct {
	// Invalid says why the Secret can't be used; nil if it can.
	Invalid *settings.Problem
	// Warnings about a Secret that can be used.
	Warnings []settings.Problem
	// Material of a Secret that can be used.
	Material certs.Material
}

// TLSWish reads and judges the Secret that a cluster with TLS names.
func (r *Reach) TLSWish(ctx context.Context, cluster *v1alpha1.ValkeyCluster, now time.Time) (Wish, error) {
	name := cluster.Spec.TLS.SecretRef
	if name == objects.TLSSecretName(cluster.Name) {
		return Wish{Invalid: &settings.Problem{Reason: v1alpha1.ReasonTLSInvalid, Message: fmt.Sprintf(
			"spec.tls.secretRef: %s is the manager's own copy; name the Secret that you maintain", name)}}, nil
	}
	if reasons := path.IsValidPathSegmentName(name); len(reasons) > 0 {
		// Older CRDs took any text. The client would refuse to ask for it.
		return Wish{Invalid: &settings.Problem{Reason: v1alpha1.ReasonTLSSecretNotFound, Message: fmt.Sprintf(
			"spec.tls.secretRef: %q is no name of a Secret: it %s; name one with tls.crt, tls.key and ca.crt", name, strings.Join(reasons, ", "))}}, nil
	}
	secret, err := r.Secret(ctx, cluster.Namespace, name)
	if apierrors.IsNotFound(err) {
		text := fmt.Sprintf("Secret %s does not exist in namespace %s; create it with tls.crt, tls.key and ca.crt", name, cluster.Namespace)
		if len(cluster.Status.Nodes) > 0 {
			text += "; until then servers go on with the certificate they have, and nothing is repaired: a server that dies is not replaced"
		}
		return Wish{Invalid: &settings.Problem{Reason: v1alpha1.ReasonTLSSecretNotFound, Message: text}}, nil
	}
	if err != nil {
		return Wish{}, fmt.Errorf("read TLS Secret %s: %w", name, err)
	}
	_, fatal, warnings := certs.Check(secret.Data, string(secret.Type), r.tlsNames(cluster), now)
	if len(fatal) > 0 {
		var messages []string
		for _, p := range fatal {
			messages = append(messages, p.Message)
		}
		return Wish{Invalid: &settings.Problem{Reason: v1alpha1.ReasonTLSInvalid, Message: fmt.Sprintf("Secret %s: %s", name, strings.Join(messages, "; "))}}, nil
	}
	material, err := certs.ParseMaterial(objects.TLSMaterial{
		CA: secret.Data[certs.CAKey], Certificate: secret.Data[certs.CertificateKey], Key: secret.Data[certs.PrivateKeyKey],
	})
	if err != nil {
		return Wish{}, fmt.Errorf("read TLS Secret %s: %w", name, err)
	}
	return Wish{Warnings: warnings, Material: material}, nil
}

// tlsNames are the names that the leaf has to have.
func (r *Reach) tlsNames(cluster *v1alpha1.ValkeyCluster) certs.Names {
	names := certs.Names{Service: objects.ServiceDNSName(cluster.Name, cluster.Namespace, r.ClusterDomain)}
	external := cluster.Spec.ExternalAccess
	if external == nil || !external.Enabled || external.Domain == "" {
		return names
	}
	for shard := range cluster.Spec.Shards {
		names.External = append(names.External, announce.ShardHostname(external, shard))
	}
	return names
}

// ErrNoCopy says that the cluster has no copy of a TLS Secret yet.
var ErrNoCopy = errors.New("there is no checked copy of the TLS Secret yet")

// TLSCopy reads the manager's copy, which is what nodes load and by which they are
// verified. Without one the error is ErrNoCopy.
func (r *Reach) TLSCopy(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (certs.Material, error) {
	name := objects.TLSSecretName(cluster.Name)
	secret, err := r.Secret(ctx, cluster.Namespace, name)
	if apierrors.IsNotFound(err) {
		return certs.Material{}, ErrNoCopy
	}
	if err != nil {
		return certs.Material{}, fmt.Errorf("read Secret %s: %w", name, err)
	}
	if err := Owned(cluster, secret); err != nil {
		return certs.Material{}, err
	}
	material, err := objects.TLSMaterialOf(secret)
	if err != nil {
		return certs.Material{}, &DamagedError{err}
	}
	parsed, err := certs.ParseMaterial(material)
	if err != nil {
		return certs.Material{}, &DamagedError{fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, err)}
	}
	return parsed, nil
}

// DamagedError is a copy that somebody has changed, so that it can't be read.
type DamagedError struct {
	err error
}

func (e *DamagedError) Error() string { return e.err.Error() }

// Unwrap returns what is wrong.
func (e *DamagedError) Unwrap() error { return e.err }

// Trust is whom the manager believes when it dials a cluster: nobody in particular
// on a plaintext cluster.
type Trust struct {
	tls   bool
	roots *x509.CertPool
	leaf  string
}

// Trust of a cluster. On a cluster with TLS it is the CA of the manager's copy and
// nothing else.
func (r *Reach) Trust(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (Trust, error) {
	if cluster.Spec.TLS == nil {
		return Trust{}, nil
	}
	material, err := r.TLSCopy(ctx, cluster)
	if err != nil {
		return Trust{}, err
	}
	return Trust{tls: true, roots: material.Roots(), leaf: material.Leaf.Fingerprint}, nil
}

// Target says how a node is reached: by pod IP in plaintext, or with TLS by the
// pod's own DNS name, which is verified. There is no way from TLS to plaintext.
func (r *Reach) Target(cluster *v1alpha1.ValkeyCluster, trust Trust, node *v1alpha1.ValkeyNode, podIP string) valkey.Target {
	port := strconv.Itoa(int(objects.ClientPort))
	if cluster.Spec.TLS == nil {
		return valkey.Target{Node: node.Name, Address: net.JoinHostPort(podIP, port)}
	}
	host := objects.PodDNSName(node.Name, cluster.Name, cluster.Namespace, r.ClusterDomain)
	roots := trust.roots
	if roots == nil {
		roots = x509.NewCertPool() // nobody, where nil would be whom the machine trusts
	}
	target := valkey.Target{
		Node: node.Name, Address: net.JoinHostPort(host, port), PodIP: podIP,
		TLS: &tls.Config{ServerName: host, RootCAs: roots, MinVersion: tls.VersionTLS12},
		// An expired certificate only warns.
		KnownLeaves: []string{trust.leaf},
	}
	if node.Status.Applied != nil && node.Status.Applied.Leaf != "" {
		target.KnownLeaves = append(target.KnownLeaves, node.Status.Applied.Leaf)
	}
	return target
}
