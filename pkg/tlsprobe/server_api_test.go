//go:build api

package tlsprobe

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey/valkeytest"
)

const service = "c.n.svc.cluster.local"

// files are a Secret's content on disk, for servers.
type files struct {
	dir   string
	roots *x509.CertPool
	now   func() time.Time
}

func newFiles(t *testing.T, names certs.Names) *files {
	t.Helper()
	data, err := certs.SelfSigned(names, time.Now(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	f := &files{dir: t.TempDir(), now: time.Now}
	for key, text := range data {
		if err := os.WriteFile(filepath.Join(f.dir, key), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f.roots, err = certs.Roots(data[certs.CAKey]); err != nil {
		t.Fatal(err)
	}
	return f
}

// server is a real valkey-server on a loopback address of its own.
type server struct {
	ip, name string
	log      string
}

func startServer(t *testing.T, f *files, n int, more ...string) *server {
	t.Helper()
	s := &server{ip: valkeytest.Loopback(100 + n), name: fmt.Sprintf("c-0000%d.%s", n, service)}
	dir := t.TempDir()
	s.log = filepath.Join(dir, "log")
	args := append([]string{
		"--port", "0", "--tls-port", "6379", "--tls-cluster", "yes", "--tls-replication", "yes", "--tls-auth-clients", "no",
		"--tls-cert-file", filepath.Join(f.dir, certs.CertificateKey), "--tls-key-file", filepath.Join(f.dir, certs.PrivateKeyKey),
		"--tls-ca-cert-file", filepath.Join(f.dir, certs.CAKey), "--bind", s.ip, "--cluster-enabled", "yes", "--dir", dir, "--save", "",
		"--cluster-announce-ip", s.ip, "--cluster-announce-hostname", s.name, "--cluster-preferred-endpoint-type", "hostname", "--logfile", s.log, "--protected-mode", "no",
	}, more...)
	valkeytest.Start(t, "", args...)
	valkeytest.Eventually(t, "server "+s.ip+" listens", func() error {
		conn, err := net.Dial("tcp", s.ip+":6379")
		if err == nil {
			conn.Close()
		}
		return err
	})
	return s
}

func (s *server) dial(port string) Dial {
	return func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(s.ip, port))
	}
}

func (s *server) target(t *testing.T, f *files) Target {
	t.Helper()
	foreign, err := ForeignCA()
	if err != nil {
		t.Fatal(err)
	}
	return Target{
		Client: s.dial("6379"), Bus: s.dial("16379"), Name: s.name, Service: service, Roots: f.roots, Foreign: foreign, Now: f.now,
	}
}

func cli(t *testing.T, f *files, args ...string) string {
	t.Helper()
	out, err := exec.Command(valkeytest.Program(t, "valkey-cli"), append([]string{"--tls", "--cacert", filepath.Join(f.dir, certs.CAKey)}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("valkey-cli %v: %v: %s", args, err, out)
	}
	return string(out)
}

func TestARealServerIsSeenAsItIs(t *testing.T) {
	f := newFiles(t, certs.Names{Service: service})
	n := Probe(t.Context(), startServer(t, f, 1).target(t, f))
	switch {
	case !n.Own.OK(), n.Service == nil || !n.Service.OK():
		t.Errorf("handshakes: %+v, %+v", n.Own.Err, n.Service)
	case n.Own.ClientCertificate:
		t.Error("the client port asks for a certificate")
	case n.Foreign == nil || !n.Foreign.Mistrusted():
		t.Errorf("another CA: %+v", n.Foreign)
	case n.Plain == nil || n.Plain.DialErr != nil || n.Plain.Answered():
		t.Errorf("plaintext: %+v", n.Plain)
	case n.Bus == nil || !n.Bus.Trusted || !n.Bus.ClientCertificate:
		t.Errorf("bus: %+v", n.Bus)
	case n.BusPlain == nil || n.BusPlain.Answered():
		t.Errorf("plaintext on the bus: %+v", n.BusPlain)
	case n.Session == nil || n.Session.Err != nil || n.Session.Refusal != "" || n.Session.Replication["role"] != "master":
		t.Errorf("session: %+v", n.Session)
	}
}

func TestARealServerThatDemandsACertificateIsSeen(t *testing.T) {
	f := newFiles(t, certs.Names{Service: service})
	for i, protocols := range []string{"TLSv1.3", "TLSv1.2"} {
		n := Probe(t.Context(), startServer(t, f, 1+i, "--tls-auth-clients", "yes", "--tls-protocols", protocols).target(t, f))
		if !n.Own.Trusted || !n.Own.ClientCertificate || n.Own.Err == nil && (n.Session == nil || n.Session.Err == nil) {
			t.Errorf("%s: %+v, %+v", protocols, n.Own, n.Session)
		}
	}
}

func TestARealServerWithUsersAnswersWithAnError(t *testing.T) {
	f := newFiles(t, certs.Names{Service: service})
	s := startServer(t, f, 1, "--user", "app", "on", ">secret", "~*", "+ping", "+info", "+get", "--user", "default", "off")
	target := s.target(t, f)
	if n := Probe(t.Context(), target); n.Session == nil || !strings.HasPrefix(n.Session.Refusal, "NOAUTH") {
		t.Errorf("%+v", n.Session)
	}
	target.Login = Credentials{User: "app", Password: "wrong"}
	if n := Probe(t.Context(), target); n.Session == nil || !strings.HasPrefix(n.Session.Refusal, "WRONGPASS") {
		t.Errorf("%+v", n.Session)
	}
	target.Login.Password = "secret"
	if n := Probe(t.Context(), target); n.Session == nil || n.Session.Replication["role"] != "master" {
		t.Errorf("%+v", n.Session)
	}
}

func TestARealServerInPlaintextIsSeen(t *testing.T) {
	f := newFiles(t, certs.Names{Service: service})
	s := startServer(t, f, 1, "--tls-port", "0", "--port", "6379", "--tls-cluster", "no")
	n := Probe(t.Context(), s.target(t, f))
	if n.Own.Err == nil || len(n.Own.Chain) > 0 || n.Plain == nil || string(n.Plain.Reply) != "+PONG\r\n" || n.Session != nil {
		t.Errorf("%+v", n)
	}
	if n.Bus == nil || n.Bus.Err == nil || len(n.Bus.Chain) > 0 {
		t.Errorf("bus: %+v", n.Bus)
	}
}

func TestARealServerWithAWrongNameIsSentNothing(t *testing.T) {
	f := newFiles(t, certs.Names{Service: "other.n.svc.cluster.local"})
	s := startServer(t, f, 1, "--loglevel", "debug")
	target := s.target(t, f)
	target.Login = Credentials{User: "app", Password: "secret"}
	n := Probe(t.Context(), target)
	var name x509.HostnameError
	if !errors.As(n.Own.Err, &name) || n.Session != nil || n.Plain != nil || n.BusPlain != nil {
		t.Errorf("%+v", n)
	}
	out := cli(t, f, "-h", s.ip, "--insecure", "INFO", "commandstats")
	for _, command := range []string{"ping", "auth", "hello", "get", "cluster"} {
		if strings.Contains(out, "cmdstat_"+command) {
			t.Errorf("%s was sent: %s", command, out)
		}
	}
}

func TestAClientFollowsRedirectsThroughARealCluster(t *testing.T) {
	f := newFiles(t, certs.Names{Service: service})
	servers := map[string]*server{}
	addresses := make([]string, 0, 3)
	for n := 1; n <= 3; n++ {
		s := startServer(t, f, n)
		servers[s.name], addresses = s, append(addresses, s.ip+":6379")
	}
	cli(t, f, append(append([]string{"--cluster", "create"}, addresses...), "--cluster-yes")...)
	first := strings.TrimSuffix(addresses[0], ":6379")
	valkeytest.Eventually(t, "every server knows every slot", func() error {
		for _, s := range servers {
			if out := cli(t, f, "-h", s.ip, "CLUSTER", "INFO"); !strings.Contains(out, "cluster_state:ok") {
				return errors.New(out)
			}
			if out := cli(t, f, "-h", s.ip, "CLUSTER", "SLOTS"); strings.Count(out, service) != 3 {
				return errors.New(out)
			}
		}
		return nil
	})
	path := Path{
		First: service + ":6379", Roots: f.roots, Now: f.now,
		Route: func(host, port string) (Dial, bool) {
			if host == service {
				return (&server{ip: first}).dial(port), true
			}
			s := servers[host]
			if s == nil {
				return nil, false
			}
			return s.dial(port), true
		},
	}
	third := 16384/3 + 1
	for i := range 3 {
		path.Shards = append(path.Shards, func(slot int) bool { return slot/third == i && slot%third > 5 && slot%third < third-5 })
	}
	w := Walk(t.Context(), path)
	if w.Err != nil || w.Refusal != "" || len(w.Shards) != 3 {
		t.Fatalf("%+v", w)
	}
	reached, redirected := map[string]bool{}, 0
	for _, shard := range w.Shards {
		if shard.Err != nil || shard.Refusal != "" {
			t.Errorf("%+v", shard)
		}
		if reached[shard.Address] = true; shard.Redirected {
			redirected++
		}
	}
	t.Logf("%+v", w.Shards)
	if len(reached) != 3 || redirected == 0 {
		t.Errorf("reached %v, %d by a redirect", reached, redirected)
	}
	// A server whose name the certificate doesn't cover is not reached.
	cli(t, f, "-h", first, "CONFIG", "SET", "cluster-announce-hostname", "elsewhere.example.com")
	valkeytest.Eventually(t, "every server has the new name", func() error {
		for _, s := range servers {
			if out := cli(t, f, "-h", s.ip, "CLUSTER", "SLOTS"); !strings.Contains(out, "elsewhere.example.com") {
				return errors.New(out)
			}
		}
		return nil
	})
	inner := path.Route
	path.Route = func(host, port string) (Dial, bool) {
		if host == "elsewhere.example.com" {
			return (&server{ip: first}).dial(port), true
		}
		return inner(host, port)
	}
	failed := 0
	for _, shard := range Walk(t.Context(), path).Shards {
		var name x509.HostnameError
		if errors.As(shard.Err, &name) {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d shards were not reached for their names, want 1", failed)
	}
}
