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
