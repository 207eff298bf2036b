package verifytls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// broken is one thing that is wrong, and the rows that say so.
type broken struct {
	name  string
	wreck func(*setup)
	// check that fails, on so many places, for a reason and with a fix that hold
	// these words.
	check       string
	places      int
	reason, fix string
	// also are further checks that fail because of it.
	also []string
	// untouched are nodes that must not get a byte of an application.
	untouched []int
	// skipped is a check that can't be made.
	skipped string
}

func withLeaf(f func(*x509.Certificate)) func(*setup) {
	return func(s *setup) { s.serve(s.ca.leaf(s.t, f), s.ca) }
}

func all() []int { return []int{0, 1, 2, 3, 4, 5} }

var brokenSetups = []broken{
	{
		name:  "the certificate lacks the pods' wildcard",
		wreck: withLeaf(func(c *x509.Certificate) { c.DNSNames = c.DNSNames[:1] }),
		check: checkHandshake, places: 6, reason: "is for demo.team-a.svc.cluster.local, not for demo-", fix: "both names",
		also: []string{"secret-names", checkBus, checkPath}, untouched: nil,
	},
	{
		name:  "the certificate lacks the Service's name",
		wreck: withLeaf(func(c *x509.Certificate) { c.DNSNames = c.DNSNames[1:] }),
		check: checkService, places: 6, reason: "not for demo.team-a.svc.cluster.local", fix: "both names",
		also: []string{"secret-names", checkPath},
	},
	{
		name: "the certificate is for another cluster",
		wreck: withLeaf(func(c *x509.Certificate) {
			c.DNSNames = []string{"cache.team-a.svc.cluster.local", "*.cache.team-a.svc.cluster.local"}
		}),
		check: "secret-names", places: 1, reason: "lacks the names demo.team-a.svc.cluster.local, *.demo.team-a", fix: "kubectl valkey certificate",
		also: []string{checkHandshake, checkService, checkBus, checkPath}, untouched: all(),
	},
	{
		name: "the name is only the common name",
		wreck: withLeaf(func(c *x509.Certificate) {
			c.DNSNames, c.Subject.CommonName = nil, service
		}),
		check: "secret-names", places: 1, reason: "a common name doesn't count", fix: "both names",
		also: []string{checkHandshake, checkService, checkBus, checkPath}, untouched: all(),
	},
	{
		name:  "ca.crt is another CA's",
		wreck: func(s *setup) { s.secret = secret(s.t, s.leaf, s.other) },
		check: "secret-chain", places: 1, reason: "not signed by any CA in ca.crt", fix: "ca.crt",
		also: []string{checkHandshake, checkService, checkBus, checkPath}, untouched: all(),
	},
	{
		name: "the certificate has expired",
		wreck: withLeaf(func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = plugintest.Now.AddDate(0, -3, 0), plugintest.Now.Add(-time.Hour)
		}),
		check: "secret-dates", places: 1, reason: "expired on 2026-06-01T11:00:00Z", fix: "renew",
		also: []string{checkHandshake, checkService, checkBus, checkPath}, untouched: all(),
	},
	{
		name:  "the certificate is not valid yet",
		wreck: withLeaf(func(c *x509.Certificate) { c.NotBefore = plugintest.Now.Add(time.Hour) }),
		check: checkHandshake, places: 6, reason: "is not valid before 2026-06-01T13:00:00Z", fix: "renew",
		also: []string{"secret-dates", checkService, checkBus, checkPath}, untouched: all(),
	},
	{
		name: "tls.crt begins with the CA",
		wreck: func(s *setup) {
			s.secret.Data[certs.CertificateKey] = slices.Concat(s.ca.pem(), s.secret.Data[certs.CertificateKey])
		},
		check: "secret-leaf-first", places: 1, reason: "must begin with the leaf", fix: "beginning of tls.crt",
		also: []string{"secret-names", "secret-usages", checkServed},
	},
	{
		name: "tls.key is another key",
		wreck: func(s *setup) {
			s.secret.Data[certs.PrivateKeyKey] = secret(s.t, s.ca.leaf(s.t, nil)).Data[certs.PrivateKeyKey]
		},
		check: "secret-private-key", places: 1, reason: "not the key of the certificate", fix: "issued together",
	},
	{
		name:  "tls.crt is no PEM",
		wreck: func(s *setup) { s.secret.Data[certs.CertificateKey] = []byte("certificate") },
		check: "secret-certificate", places: 1, reason: "is not PEM", fix: "in PEM",
		skipped: checkServed,
	},
	{
		name:  "ca.crt is missing",
		wreck: func(s *setup) { delete(s.secret.Data, certs.CAKey) },
		check: "secret-keys", places: 1, reason: "it has no ca.crt", fix: "missing key", skipped: checkTrust, untouched: all(),
	},
	{
		name:  "ca.crt holds no certificate",
		wreck: func(s *setup) { s.secret.Data[certs.CAKey] = s.secret.Data[certs.PrivateKeyKey] },
		check: "secret-ca", places: 1, reason: "private key in place of a certificate", fix: "ca.crt", skipped: checkTrust, untouched: all(),
	},
	{
		name:  "the Secret has another type",
		wreck: func(s *setup) { s.secret.Type = corev1.SecretTypeOpaque },
		check: "secret-type", places: 1, reason: "must be kubernetes.io/tls", fix: "create it anew",
	},
	{
		name:  "the Secret doesn't exist",
		wreck: func(s *setup) { s.secret = nil },
		check: checkSecret, places: 1, reason: "demo-tls doesn't exist in namespace team-a", fix: "kubectl valkey certificate demo",
		skipped: checkTrust, untouched: all(),
	},
	{
		name: "the certificate is for servers only",
		wreck: withLeaf(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}),
		check: "secret-usages", places: 1, reason: "lacks client auth", fix: "server auth and client auth",
	},
	{
		name: "the certificate is for clients only",
		wreck: withLeaf(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}),
		check: checkHandshake, places: 6, reason: "may not be used by servers", fix: "server auth and client auth",
		also: []string{"secret-usages", checkService, checkBus, checkPath}, untouched: all(),
	},
	{
		name: "the intermediate is missing",
		wreck: func(s *setup) {
			s.serve(newAuthority(s.t, "middle", s.ca).leaf(s.t, nil), s.ca)
		},
		check: "secret-chain", places: 1, reason: "issuer of the certificate: CN=middle", fix: "intermediates after the leaf",
		also: []string{checkHandshake, checkService, checkBus, checkPath}, untouched: all(),
	},
	{
		name:  "one node is still on the old leaf",
		wreck: func(s *setup) { s.servers[2].leaf = s.ca.leaf(s.t, nil) },
		check: checkServed, places: 1, reason: "shows the leaf", fix: "--wait",
	},
	{
		name:  "one node is still on a leaf of the old CA",
		wreck: func(s *setup) { s.servers[2].leaf = s.other.leaf(s.t, nil) },
		check: checkHandshake, places: 1, reason: "CN=other CA, which is not the Secret's) is not signed by a CA in ca.crt", fix: "rotation is under way",
		also: []string{checkService, checkServed, checkBus, checkPath}, untouched: []int{2},
	},
	{
		name: "a rogue pod with a certificate of its own",
		wreck: func(s *setup) {
			rogue := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: plugintest.Namespace, Name: "rogue", Labels: map[string]string{
					v1alpha1.LabelName: v1alpha1.ApplicationName, v1alpha1.LabelInstance: "demo",
				}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.9.9"},
			}
			s.fixture.Pods = append(s.fixture.Pods, rogue)
			server := &server{name: "rogue", leaf: s.other.leaf(s.t, nil), bus: tls.NoClientCert}
			s.servers, s.byName["rogue"] = append(s.servers, server), server
		},
		check: checkHandshake, places: 1, reason: "not signed by a CA in ca.crt", fix: "not a node of the cluster",
		also: []string{checkService, checkServed, checkBus}, untouched: []int{6},
	},
	{
		name:  "a server that speaks plaintext",
		wreck: func(s *setup) { s.servers[4].plain = true },
		check: checkPlaintext, places: 1, reason: `answered with "+PONG"`, fix: "find out what runs there",
		also: []string{checkHandshake, checkPath},
	},
	{
		name:  "a server that demands a client certificate",
		wreck: func(s *setup) { s.servers[0].clients = tls.RequireAnyClientCert },
		check: checkNoClient, places: 1, reason: "demands a client certificate", fix: "tls-auth-clients no",
		also: []string{checkPath},
	},
	{
		name: "a server that demands a client certificate, with TLS 1.2",
		wreck: func(s *setup) {
			s.servers[5].clients, s.servers[5].version = tls.RequireAnyClientCert, tls.VersionTLS12
		},
		check: checkNoClient, places: 1, reason: "demands a client certificate", fix: "tls-auth-clients no",
		also: []string{checkPath},
	},
	{
		name:  "a server that asks for a client certificate",
		wreck: func(s *setup) { s.servers[0].clients = tls.RequestClientCert },
		check: checkNoClient, places: 1, reason: "asks for a client certificate", fix: "tls-auth-clients no",
	},
	{
		name:  "a bus in plaintext",
		wreck: func(s *setup) { s.servers[3].plainBus = true },
		check: checkBus, places: 1, reason: "closes the connection instead of a TLS handshake", fix: "tls-cluster yes",
	},
	{
		name:  "a bus that lets peers in without a certificate",
		wreck: func(s *setup) { s.servers[3].bus = tls.NoClientCert },
		check: checkBus, places: 1, reason: "peers without a certificate are let in", fix: "find out what runs there",
	},
	{
		name:  "a replica without its link",
		wreck: func(s *setup) { s.servers[1].linkDown = true },
		check: checkReplication, places: 1, reason: "down for 17 s", fix: "client auth",
	},
	{
		name:  "a redirect to a name that isn't a node's",
		wreck: func(s *setup) { s.servers[2].announced = "10.0.2.12" },
		check: checkPath, places: 1, reason: "which belongs to no node of the cluster", fix: "names that servers announce",
	},
	{
		name: "no permission to forward ports",
		wreck: func(s *setup) {
			for _, server := range s.servers {
				server.refuse = errors.New("ports of pods can't be forwarded: needs create pods/portforward in namespace team-a")
			}
		},
		check: checkReachable, places: 6, reason: "needs create pods/portforward in namespace team-a", fix: "--direct",
		also: []string{checkPath},
	},
	{
		name: "no permission to read the Secret",
		wreck: func(s *setup) {
			s.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, ok := obj.(*corev1.Secret); ok {
					return plugintest.Forbidden("get", "secrets", key.Namespace)
				}
				return c.Get(ctx, key, obj, opts...)
			}
		},
		check: checkSecret, places: 1, reason: "needs get secrets in namespace team-a", fix: "--ca-file", skipped: checkTrust, untouched: all(),
	},
	{
		name: "a cluster that is Invalid",
		wreck: func(s *setup) {
			s.fixture.Cluster.Status.State, s.fixture.Cluster.Status.Message = v1alpha1.StateInvalid, "Secret demo-tls: it has no ca.crt"
			s.fixture.Condition(v1alpha1.ConditionTLSReady, false, v1alpha1.ReasonTLSInvalid, "it has no ca.crt")
		},
		check: checkState, places: 1, reason: "the cluster is Invalid: Secret demo-tls: it has no ca.crt", fix: "once it is Active",
		also: []string{checkReady},
	},
	{
		name: "an external hostname that isn't covered",
		wreck: func(s *setup) {
			s.fixture.Cluster.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true, Domain: "example.com"}
		},
		check: "secret-external-names", places: 1, reason: "shard-0.example.com", fix: "external hostnames",
	},
	{
		name:  "nothing announced outside",
		wreck: func(s *setup) { s.args = []string{"--external"} },
		check: checkExternal, places: 1, reason: "no hostname and port is announced", fix: "preferredEndpointType: hostname",
	},
	{
		name: "an external hostname that leads to a certificate without it",
		wreck: func(s *setup) {
			s.args = []string{"--external"}
			s.fixture.Cluster.Status.ExternalEndpoints = []v1alpha1.ExternalEndpoint{{ShardIndex: 0, Hostname: "shard-0.example.com", Ports: []int32{30000}}}
		},
		check: checkHandshake, places: 1, reason: "not for shard-0.example.com", fix: "both names", also: []string{checkPath},
	},
}
