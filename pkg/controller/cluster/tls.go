package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// tlsMaterial is what the cluster's TLS Secret holds, checked.
type tlsMaterial struct {
	// invalid says why the Secret can't be used; nil if it can, or without TLS.
	invalid  *problem
	warnings []settings.Problem
	material objects.TLSMaterial
	leaf     certs.Leaf
	roots    *x509.CertPool
	status   *v1alpha1.TLSStatus
	// outdated is true when nodes were given other material than the Secret holds.
	outdated bool
}

// checkTLS reads and validates the Secret that a cluster names, in any state of
// the cluster and on every pass.
func (r *Reconciler) checkTLS(ctx context.Context, cluster *v1alpha1.ValkeyCluster, now time.Time) (tlsMaterial, error) {
	if cluster.Spec.TLS == nil {
		return tlsMaterial{}, nil
	}
	name := cluster.Spec.TLS.SecretRef
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return tlsMaterial{invalid: &problem{
			v1alpha1.ReasonTLSSecretNotFound,
			fmt.Sprintf("Secret %s does not exist in namespace %s; create it with tls.crt, tls.key and ca.crt", name, cluster.Namespace),
		}}, nil
	}
	if err != nil {
		return tlsMaterial{}, fmt.Errorf("read TLS Secret %s: %w", name, err)
	}
	service := objects.ServiceDNSName(cluster.Name, cluster.Namespace, r.Options.ClusterDomain)
	leaf, fatal, warnings := certs.Check(secret.Data, string(secret.Type), certs.Names{Service: service}, now)
	if len(fatal) > 0 {
		var messages []string
		for _, p := range fatal {
			messages = append(messages, p.Message)
		}
		return tlsMaterial{invalid: &problem{v1alpha1.ReasonTLSInvalid, fmt.Sprintf("Secret %s: %s", name, join(messages))}}, nil
	}
	material := objects.TLSMaterial{CA: secret.Data["ca.crt"], Certificate: secret.Data["tls.crt"], Key: secret.Data["tls.key"]}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(material.CA)
	notAfter := metav1.NewTime(leaf.NotAfter)
	return tlsMaterial{
		warnings: warnings, material: material, leaf: leaf, roots: roots,
		status: &v1alpha1.TLSStatus{Fingerprint: leaf.Fingerprint, NotAfter: &notAfter},
	}, nil
}

// ensureTLS makes the manager's own copy of the checked material, which is what
// pods mount: a bad edit of the user's Secret so reaches no node.
func (r *Reconciler) ensureTLS(ctx context.Context, o *observation) error {
	if o.cluster.Spec.TLS == nil {
		return nil
	}
	want := objects.TLSSecret(o.cluster, o.tls.material)
	live := &corev1.Secret{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, o, want)
	}
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", want.Name, err)
	}
	if err := owned(o.cluster, live); err != nil {
		return err
	}
	o.tls.outdated = !maps.EqualFunc(live.Data, want.Data, bytes.Equal)
	return nil
}

// condition is TLSReady as far as the Secret decides it.
func (t tlsMaterial) condition() metav1.Condition {
	kind := v1alpha1.ConditionTLSReady
	switch {
	case t.invalid != nil:
		return condition(kind, false, t.invalid.reason, t.invalid.message)
	case t.outdated:
		return condition(kind, false, v1alpha1.ReasonTLSNotServed, "the Secret changed after the nodes were given their certificate; they go on with the one they have")
	case len(t.warnings) > 0:
		// A certificate that will expire soon still does what it has to.
		fine := t.warnings[0].Reason == v1alpha1.ReasonTLSExpiring
		return condition(kind, fine, t.warnings[0].Reason, t.warnings[0].Message)
	}
	return condition(kind, true, v1alpha1.ReasonTLSServed, fmt.Sprintf("the certificate is valid until %s", t.leaf.NotAfter.UTC().Format(time.RFC3339)))
}

// dialTarget says how a node is reached: by pod IP in plaintext, or with TLS by
// the pod's own DNS name, which is verified against the cluster's CA and nothing
// else. There is no way from TLS to plaintext.
func (r *Reconciler) dialTarget(o *observation, name string) valkey.Target {
	ip := o.pods[name].Status.PodIP
	port := strconv.Itoa(int(objects.ClientPort))
	if o.cluster.Spec.TLS == nil {
		return valkey.Target{Node: name, Address: net.JoinHostPort(ip, port)}
	}
	host := objects.PodDNSName(name, o.cluster.Name, o.cluster.Namespace, r.Options.ClusterDomain)
	return valkey.Target{
		Node: name, Address: net.JoinHostPort(host, port), PodIP: ip,
		TLS: &tls.Config{ServerName: host, RootCAs: o.tls.roots, MinVersion: tls.VersionTLS12, Time: o.tls.leaf.Clock()},
	}
}
