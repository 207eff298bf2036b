package verifytls

import (
	"context"
	"crypto/x509"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/checklist"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// subject is what is verified: a cluster, its Secret, and where its servers are.
type subject struct {
	cluster *v1alpha1.ValkeyCluster
	nodes   []inspect.Node
	// unlisted is why nodes could not be listed.
	unlisted error

	names certs.Names
	// secret is nil when it can't be read; secretErr says why.
	secret    *corev1.Secret
	secretErr error
	leaf      certs.Leaf
	findings  []certs.Finding
	// roots is nil without a usable CA; rootless says why.
	roots    *x509.CertPool
	rootless string
}

// observe reads what there is to verify. It fails only without the cluster, and for
// a cluster without TLS.
func (o *Options) observe(ctx context.Context) (*subject, error) {
	snapshot, err := inspect.Fetch(ctx, o.client, o.namespace, o.name)
	if err != nil {
		return nil, err
	}
	s := &subject{cluster: snapshot.Cluster, nodes: snapshot.NodeList()}
	if s.cluster.Spec.TLS == nil {
		return nil, fmt.Errorf("cluster %s in namespace %s has no TLS: that is chosen when a cluster is created, so create another with --tls-secret", o.name, o.namespace)
	}
	if snapshot.Nodes.Err != nil && snapshot.Pods.Err != nil {
		s.unlisted = snapshot.Nodes.Err
	}
	s.names = s.expectedNames(o.clusterDomain)
	var secret corev1.Secret
	s.secretErr = kube.Get(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: s.cluster.Spec.TLS.SecretRef}, &secret, "secrets")
	if s.secretErr == nil {
		s.secret = &secret
		s.leaf, s.findings = certs.Findings(secret.Data, string(secret.Type), s.names, o.clock.Now())
	}
	s.trust(o.ca)
	return s, ctx.Err()
}

// trust finds the CA to verify with: the one that was given, else that of the
// Secret. There is no third: the system's CAs are no way to trust a cluster.
func (s *subject) trust(given []byte) {
	ca := given
	if ca == nil {
		if s.secret == nil {
			s.rootless = "without the Secret there is no CA to verify with"
			return
		}
		ca = s.secret.Data[certs.CAKey]
	}
	roots, err := certs.Roots(ca)
	if err != nil {
		s.rootless = "there is no CA to verify with: " + err.Error()
		return
	}
	s.roots = roots
}

// expectedNames takes the cluster domain from what the manager says, unless it was
// given.
func (s *subject) expectedNames(domain string) certs.Names {
	c := s.cluster
	if domain == "" {
		host, _, _ := strings.Cut(c.Status.Endpoint, ":")
		domain = settings.DefaultClusterDomain
		if rest, ok := strings.CutPrefix(host, objects.ServiceDNSName(c.Name, c.Namespace, "")); ok && rest != "" {
			domain = rest
		}
	}
	names := certs.Names{Service: objects.ServiceDNSName(c.Name, c.Namespace, domain)}
	for shard := range c.Spec.Shards {
		if host := announce.ShardHostname(c.Spec.ExternalAccess, shard); host != "" {
			names.External = append(names.External, host)
		}
	}
	return names
}

// secretRows say how the Secret is, or why that isn't known.
func (s *subject) secretRows() []checklist.Row {
	r := &checklist.Rows{}
	name := s.cluster.Spec.TLS.SecretRef
	switch {
	case s.secretErr == nil:
		return append(r.List, checklist.OfSecret(s.leaf, s.findings, s.names.External)...)
	case apierrors.IsNotFound(s.secretErr):
		r.Fail(checkSecret, fmt.Sprintf("Secret %s doesn't exist in namespace %s", name, s.cluster.Namespace),
			"create it, or name the right one in spec.tls.secretRef; kubectl valkey certificate "+s.cluster.Name+" writes what cert-manager makes it from")
	default:
		r.Fail(checkSecret, fmt.Sprintf("Secret %s was not checked: %v", name, s.secretErr), "ask for the permission; --ca-file lets nodes be checked without it")
	}
	return r.List
}

// expected is what nodes are compared with. Without the Secret the manager's word
// has to do.
func (s *subject) expected(o *Options) expected {
	e := expected{
		LoggedIn: o.user != "",
		Wait:     o.access.Command("valkey verify-tls "+o.name+" --wait", o.namespace),
		Restart:  o.access.Command("valkey restart "+o.name, o.namespace),
		Describe: o.access.Command("valkey status "+o.name, o.namespace),
	}
	switch {
	case s.leaf.Fingerprint != "":
		e.Fingerprint, e.NotAfter = s.leaf.Fingerprint, checklist.Date(s.leaf.NotAfter)
	case s.secretErr != nil && !apierrors.IsNotFound(s.secretErr) && s.cluster.Status.TLS != nil && s.cluster.Status.TLS.Fingerprint != "":
		e.Fingerprint = s.cluster.Status.TLS.Fingerprint
		if t := s.cluster.Status.TLS.NotAfter; t != nil {
			e.NotAfter = checklist.Date(t.Time)
		}
	default:
		e.Unknown = "the Secret's certificate can't be read"
	}
	return e
}

func (s *subject) certificate(now time.Time) *Certificate {
	if s.leaf.Fingerprint == "" {
		return nil
	}
	return &Certificate{
		Subject: s.leaf.Subject, Issuer: s.leaf.Issuer, Fingerprint: s.leaf.Fingerprint, DNSNames: s.leaf.DNSNames,
		NotBefore: s.leaf.NotBefore.UTC(), NotAfter: s.leaf.NotAfter.UTC(),
		DaysLeft: int(math.Floor(s.leaf.NotAfter.Sub(now).Hours() / 24)),
	}
}

// podName is the name that clients inside verify a node by.
func (s *subject) podName(node string) string { return node + "." + s.names.Service }

// shards are those that own slots, by index, as tests whether a slot is theirs.
func (s *subject) shards() (indices []int32, has []func(int) bool) {
	for _, shard := range s.cluster.Status.Shards {
		set, err := slots.ParseSet(shard.Slots)
		if err != nil || set.Empty() {
			continue
		}
		indices, has = append(indices, shard.Index), append(has, set.Contains)
	}
	return indices, has
}

// external is one announced address outside Kubernetes.
type external struct {
	host string
	port int
}

func (e external) address() string { return net.JoinHostPort(e.host, strconv.Itoa(e.port)) }

// externals are the announced addresses.
func (s *subject) externals() []external {
	var list []external
	for _, e := range s.cluster.Status.ExternalEndpoints {
		if e.Hostname == "" {
			continue
		}
		for _, port := range e.Ports {
			if port > 0 {
				list = append(list, external{e.Hostname, int(port)})
			}
		}
	}
	return list
}

// first is the node that a client meets first: a primary, since the Service leads to
// any node, and each is looked at by itself.
func (s *subject) first() (string, bool) {
	for _, shard := range s.cluster.Status.Shards {
		if slices.ContainsFunc(s.nodes, func(n inspect.Node) bool { return n.Name == shard.Primary }) {
			return shard.Primary, true
		}
	}
	if len(s.nodes) == 0 {
		return "", false
	}
	return s.nodes[0].Name, true
}

// nodeAt finds the node that a host and port lead to, as servers announce them:
// pods by their names, and with external access by hostname and port.
func (s *subject) nodeAt(host, port string) (string, bool) {
	host = strings.TrimSuffix(host, ".")
	if host == s.names.Service {
		return s.first()
	}
	for _, n := range s.nodes {
		if host == s.podName(n.Name) {
			return n.Name, true
		}
	}
	for _, e := range s.cluster.Status.ExternalEndpoints {
		index := slices.IndexFunc(e.Ports, func(p int32) bool { return strconv.Itoa(int(p)) == port })
		if e.Hostname != host || index < 0 {
			continue
		}
		for _, n := range s.nodes {
			if n.Shard == e.ShardIndex && int(n.Index) == index {
				return n.Name, true
			}
		}
	}
	return "", false
}
