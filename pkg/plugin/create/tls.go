package create

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// checkTLS judges the Secret as the manager will.
func (c *checker) checkTLS(ctx context.Context) error {
	if c.cluster.Spec.TLS == nil {
		return nil
	}
	name := c.cluster.Spec.TLS.SecretRef
	var secret corev1.Secret
	err := kube.Get(ctx, c.reader, client.ObjectKey{Namespace: c.cluster.Namespace, Name: name}, &secret, "secrets")
	switch {
	case apierrors.IsNotFound(err):
		c.problem("Secret %q doesn't exist in namespace %s; %s", name, c.cluster.Namespace, c.existingTLSSecrets(ctx))
		return nil
	case err != nil:
		return c.unread("TLS Secret", err)
	}
	fatal, warnings := c.judge(&secret)
	for _, p := range fatal {
		c.problem("Secret %q: %s", name, p.Message)
	}
	for _, p := range warnings {
		c.note("Secret %q: %s", name, p.Message)
	}
	return nil
}

// judge checks a Secret's content. The names in it depend on the cluster domain,
// which only the manager knows: without --cluster-domain, a certificate for this
// very Service in another domain is taken to be for the right one.
func (c *checker) judge(secret *corev1.Secret) (fatal, warnings []settings.Problem) {
	domain := c.domain
	if domain == "" {
		domain = settings.DefaultClusterDomain
	}
	leaf, fatal, warnings := certs.Check(secret.Data, string(secret.Type), c.names(domain), c.now)
	if c.domain != "" || len(fatal) == 0 {
		return fatal, warnings
	}
	for _, name := range leaf.DNSNames {
		other, ok := strings.CutPrefix(name, objects.ServiceDNSName(c.cluster.Name, c.cluster.Namespace, ""))
		if !ok || other == domain {
			continue
		}
		if _, fatal, warnings := certs.Check(secret.Data, string(secret.Type), c.names(other), c.now); len(fatal) == 0 {
			c.note("the certificate is for the cluster domain %s; it fits if the manager is set to that, --cluster-domain makes sure", other)
			return nil, warnings
		}
	}
	return fatal, warnings
}

func (c *checker) names(domain string) certs.Names {
	names := certs.Names{Service: objects.ServiceDNSName(c.cluster.Name, c.cluster.Namespace, domain)}
	for shard := range c.cluster.Spec.Shards {
		if host := announce.ShardHostname(c.cluster.Spec.ExternalAccess, shard); host != "" {
			names.External = append(names.External, host)
		}
	}
	return names
}

// existingTLSSecrets lists the Secrets that could be meant. Only their names are
// read.
func (c *checker) existingTLSSecrets(ctx context.Context) string {
	list := tlsSecrets()
	if c.reader.List(ctx, list, client.InNamespace(c.cluster.Namespace), ofTypeTLS) != nil {
		return "create it with tls.crt, tls.key and ca.crt"
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	if len(names) == 0 {
		return "no Secret of type kubernetes.io/tls is there"
	}
	return settings.Existing(names)
}

func tlsSecrets() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return list
}

// ofTypeTLS selects the Secrets of type kubernetes.io/tls.
var ofTypeTLS = client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS))}
