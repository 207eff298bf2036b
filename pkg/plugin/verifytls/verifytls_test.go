package verifytls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/checklist"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// setup is what one case starts from, sound until it is changed.
type setup struct {
	t      *testing.T
	ca     *authority
	other  *authority
	leaf   tls.Certificate
	secret *corev1.Secret
	*cluster
	funcs interceptor.Funcs
	args  []string
	stdin string
	clock clock.WithTicker
}

func newSetup(t *testing.T) *setup {
	t.Helper()
	s := &setup{t: t, ca: newAuthority(t, "demo CA", nil), other: newAuthority(t, "other CA", nil), clock: clocktesting.NewFakeClock(plugintest.Now)}
	s.leaf = s.ca.leaf(t, nil)
	s.secret = secret(t, s.leaf, s.ca)
	s.cluster = newCluster(t, s.leaf)
	return s
}

// serve makes nodes and Secret use another leaf.
func (s *setup) serve(leaf tls.Certificate, ca ...*authority) {
	s.leaf = leaf
	s.secret = secret(s.t, leaf, ca...)
	for _, server := range s.servers {
		server.leaf = leaf
	}
	s.fixture.Cluster.Status.TLS.Fingerprint = certs.Fingerprint(leaf.Leaf.Raw)
}

func (s *setup) objects() []client.Object {
	objs := s.fixture.Objects()
	if s.secret != nil {
		objs = append(objs, s.secret)
	}
	return objs
}

func (s *setup) build() plugintest.Build {
	c := interceptor.NewClient(plugintest.Client(s.objects()...), s.funcs)
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		return (&Options{access: access, flags: flags, streams: streams, clock: s.clock, client: c, pods: s.cluster, dialOutside: s.dialOutside}).command()
	}
}

// dialOutside leads announced addresses to the shard's primary.
func (s *setup) dialOutside(ctx context.Context, _, address string) (net.Conn, error) {
	for _, e := range s.fixture.Cluster.Status.ExternalEndpoints {
		if host, _, _ := net.SplitHostPort(address); host == e.Hostname {
			return s.Dial(ctx, s.fixture.Cluster.Status.Shards[e.ShardIndex].Primary, clientPort)
		}
	}
	return nil, errors.New("no such host")
}

// run runs the command and reads its report.
func (s *setup) run() (report Report, errOut string, code int) {
	s.t.Helper()
	plugintest.Kubeconfig(s.t)
	session := plugintest.Start(s.t, s.build(), strings.NewReader(s.stdin), false, append([]string{"demo", "-o", "json"}, s.args...)...)
	code = session.Wait()
	if text := session.Out.String(); text != "" {
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			s.t.Fatalf("%v: %s", err, text)
		}
	}
	return report, session.ErrOut.String(), code
}

func TestASoundClusterPassesEveryCheck(t *testing.T) {
	s := newSetup(t)
	started := time.Now()
	report, errOut, code := s.run()
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("it took %s for 6 nodes", took)
	}
	if code != exit.OK || errOut != "" || report.Failed != 0 || report.Passed < 6*9 {
		t.Fatalf("exit %d, %q, %+v", code, errOut, report)
	}
	for _, row := range report.Checks {
		// The cluster has no external access.
		if row.Result != checklist.Passed && row.Check != "secret-external-names" {
			t.Errorf("%+v", row)
		}
		if row.Reason == "" || row.Result == checklist.Passed && row.Fix != "" {
			t.Errorf("%+v: a reason, and a fix only where there is something to fix", row)
		}
	}
	redirected := 0
	for _, row := range report.Checks {
		if row.Check == checkPath && strings.HasSuffix(row.Reason, "by a redirect") {
			redirected++
		}
	}
	if redirected == 0 {
		t.Error("no redirect was followed")
	}
	for _, server := range s.servers {
		if sent := server.sent(); strings.Contains(sent, "SET") || !strings.Contains(sent, "PING") {
			t.Errorf("%s was sent %q", server.name, sent)
		}
	}
}

func TestTheReportOfASoundClusterAsText(t *testing.T) {
	s := newSetup(t)
	for _, terminal := range []bool{false, true} {
		out, errOut, code := plugintest.Run(t, s.build(), terminal, "demo")
		if code != exit.OK || errOut != "" {
			t.Errorf("exit %d: %s", code, errOut)
		}
		plugintest.Golden(t, map[bool]string{false: "sound.pipe.txt", true: "sound.terminal.txt"}[terminal], out)
	}
	s.servers[1].linkDown = true
	s.servers[3].refuse = errors.New("pod is not running")
	s.secret.Data[certs.CertificateKey] = s.ca.pem()
	out, errOut, code := plugintest.Run(t, s.build(), false, "demo")
	if code != exit.Failed || strings.Count(errOut, "\n") != 1 {
		t.Errorf("exit %d: %s", code, errOut)
	}
	plugintest.Golden(t, "broken.txt", fingerprints.ReplaceAllString(out, "FINGERPRINT"))
}

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
		also: []string{"secret-names", checkServed},
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

func TestEveryBrokenSetUpFailsTheRightCheck(t *testing.T) {
	if len(brokenSetups) < 20 {
		t.Fatalf("only %d set-ups", len(brokenSetups))
	}
	for _, tt := range brokenSetups {
		t.Run(tt.name, func(t *testing.T) {
			s := newSetup(t)
			tt.wreck(s)
			report, errOut, code := s.run()
			if code != exit.Failed || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, tt.check) {
				t.Errorf("exit %d: %q", code, errOut)
			}
			places, skipped := 0, tt.skipped == ""
			for _, row := range report.Checks {
				switch {
				case row.Check == tt.check && row.Result == checklist.Failed:
					places++
					if !strings.Contains(row.Reason, tt.reason) || !strings.Contains(row.Fix, tt.fix) {
						t.Errorf("%+v, want reason %q and fix %q", row, tt.reason, tt.fix)
					}
				case row.Result == checklist.Failed && !slices.Contains(tt.also, row.Check):
					t.Errorf("also failed: %+v", row)
				}
				skipped = skipped || row.Check == tt.skipped && row.Result == checklist.Skipped
			}
			if places != tt.places || !skipped {
				t.Errorf("%s failed at %d places, want %d; %q skipped: %v\n%+v", tt.check, places, tt.places, tt.skipped, skipped, report.Checks)
			}
			for _, i := range tt.untouched {
				if sent := s.servers[i].sent(); sent != "" {
					t.Errorf("%s was sent %q, though its certificate is wrong", s.servers[i].name, sent)
				}
			}
		})
	}
}

func TestAnAuthenticationErrorIsAPassForTLSAndSaysSo(t *testing.T) {
	s := newSetup(t)
	for _, server := range s.servers {
		server.noauth = true
	}
	report, _, code := s.run()
	if code != exit.OK || report.Failed != 0 {
		t.Fatalf("exit %d: %+v", code, report)
	}
	answers, skipped := 0, 0
	for _, row := range report.Checks {
		switch row.Check {
		case checkAnswer:
			answers++
			if row.Result != checklist.Passed || !strings.Contains(row.Reason, "NOAUTH") || !strings.Contains(row.Reason, "a matter of users, not of TLS") {
				t.Errorf("%+v", row)
			}
		case checkReplication, checkPath:
			skipped++
			if row.Result != checklist.Skipped || !strings.Contains(row.Fix, "--valkey-user") {
				t.Errorf("%+v", row)
			}
		}
	}
	if answers != 6 || skipped != 7 {
		t.Errorf("%d answers and %d rows skipped", answers, skipped)
	}
}

func TestAPasswordComesFromStdinOnly(t *testing.T) {
	s := newSetup(t)
	s.args, s.stdin = []string{"--valkey-user", "app", "--password-stdin"}, "hunter2\n"
	if _, _, code := s.run(); code != exit.Failed {
		t.Logf("the servers of the test know no users: exit %d", code)
	}
	for _, server := range s.servers {
		if !strings.Contains(server.sent(), "AUTH\r\n$3\r\napp\r\n$7\r\nhunter2\r\n") {
			t.Errorf("%s was sent %q", server.name, server.sent())
		}
	}
	for _, args := range [][]string{{"--valkey-user", "app"}, {"--password-stdin"}, {"--timeout", "5s"}, {"--wait", "--timeout", "0s"}, {"-o", "name"}, {"other"}} {
		s := newSetup(t)
		s.args = args
		if _, errOut, code := s.run(); code != exit.Usage || !strings.HasPrefix(errOut, "error: ") {
			t.Errorf("%v: exit %d, %q", args, code, errOut)
		}
	}
}

func TestNodesAreVerifiedWithoutTheSecretWhenTheCAIsGiven(t *testing.T) {
	s := newSetup(t)
	s.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if _, ok := obj.(*corev1.Secret); ok {
			return plugintest.Forbidden("get", "secrets", key.Namespace)
		}
		return c.Get(ctx, key, obj, opts...)
	}
	s.args = []string{"--ca-file", writeFile(t, s.ca.pem())}
	report, _, code := s.run()
	if code != exit.Failed || report.Failed != 1 || report.Passed < 6*9 {
		t.Errorf("exit %d: %+v", code, report)
	}
}

func TestAClusterWithoutTLSSaysWhatToDo(t *testing.T) {
	s := newSetup(t)
	s.fixture.Cluster.Spec.TLS = nil
	if _, errOut, code := s.run(); code != exit.Failed || !strings.Contains(errOut, "create another with --tls-secret") {
		t.Errorf("exit %d: %q", code, errOut)
	}
}

func TestExternalNamesAreVerifiedFromHere(t *testing.T) {
	s := newSetup(t)
	s.serve(s.ca.leaf(t, func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "*.example.com") }), s.ca)
	s.fixture.Cluster.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true, Domain: "example.com"}
	for i, port := range []int32{30000, 30002, 30004} {
		host := []string{"shard-0.example.com", "shard-1.example.com", "shard-2.example.com"}[i]
		s.fixture.Cluster.Status.ExternalEndpoints = append(s.fixture.Cluster.Status.ExternalEndpoints,
			v1alpha1.ExternalEndpoint{ShardIndex: int32(i), Hostname: host, Ports: []int32{port}})
		s.byName[s.fixture.Cluster.Status.Shards[i].Primary].announced = host
	}
	s.args = []string{"--external"}
	report, errOut, code := s.run()
	outside := 0
	for _, row := range report.Checks {
		if strings.Contains(row.Where, "example.com:3000") && row.Check == checkHandshake && row.Result == checklist.Passed {
			outside++
		}
		if row.Check == checkBus && strings.Contains(row.Where, "example.com") {
			t.Errorf("a bus outside: %+v", row)
		}
	}
	if outside != 3 {
		t.Errorf("%d of 3 addresses outside verified, exit %d: %s\n%+v", outside, code, errOut, report.Checks)
	}
}
