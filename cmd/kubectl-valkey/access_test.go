package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// subcommands are all that ask the API server.
var subcommands = [][]string{
	{"status"},
	{"status", "-A"},
	{"status", "demo"},
	{"create", "new", "--config", "standard", "--shards", "1", "--replicas", "0", "--dry-run=server"},
	{"endpoints", "demo"},
	{"external", "disable", "demo", "--dry-run=server"},
	{"version"},
	{"__complete", "status", ""},
	{"verify-tls", "demo"},
	{"certificate", "demo"},
	{"rotate-credentials", "demo"},
}

// wrongServer is a server that must not be asked.
func wrongServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Error("the wrong server was asked")
			_ = c.Close()
		}
	}()
	return "https://" + l.Addr().String()
}

// P-01
func TestKubectlsFlagsReachEverything(t *testing.T) {
	right := newAPIServer(t, inNamespace("team-a", plugintest.Active("demo", 1, 0))...)
	wrong := wrongServer(t)
	both := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c2
clusters:
- {name: c1, cluster: {server: %q, certificate-authority-data: %s}}
- {name: c2, cluster: {server: %q, certificate-authority-data: %[2]s}}
contexts:
- {name: c1, context: {cluster: c1, user: u1, namespace: team-a}}
- {name: c2, context: {cluster: c2, user: u2}}
users:
- {name: u1, user: {token: token-1}}
- {name: u2, user: {token: token-2}}
`, right.URL, right.ca(), wrong)
	file := kubeconfig(t, both)
	inContext := strings.Replace(both, "current-context: c2", "current-context: c1", 1)

	// What each way leads to: the right server, asked with a token.
	ways := []struct {
		name  string
		env   []string
		flags []string
		token string
	}{
		{"--context", []string{"KUBECONFIG=" + file}, []string{"--context", "c1"}, "token-1"},
		{"--kubeconfig", []string{"KUBECONFIG=/nowhere"}, []string{"--kubeconfig", kubeconfig(t, inContext)}, "token-1"},
		{"--cluster", []string{"KUBECONFIG=" + file}, []string{"--cluster", "c1", "-n", "team-a"}, "token-2"},
		{"--user", []string{"KUBECONFIG=" + kubeconfig(t, inContext)}, []string{"--user", "u2"}, "token-2"},
		{"--server", []string{"KUBECONFIG=" + file}, []string{"--server", right.URL, "-n", "team-a"}, "token-2"},
		{"--token", []string{"KUBECONFIG=" + kubeconfig(t, inContext)}, []string{"--token", "token-3"}, "token-3"},
		{"several files", []string{
			"KUBECONFIG=" + kubeconfig(t, "apiVersion: v1\nkind: Config\ncurrent-context: c1\n") + string(os.PathListSeparator) + file,
		}, nil, "token-1"},
	}
	for _, way := range ways {
		for _, sub := range subcommands {
			// Completion gets the flags where the shell has them, before the last word.
			args := append(append(append([]string{}, sub[:len(sub)-1]...), way.flags...), sub[len(sub)-1])
			before := len(right.asked())
			r := run(t, way.env, args...)
			if len(right.asked()) == before {
				t.Errorf("%s, %v: the right server was not asked: exit %d, %s", way.name, sub, r.code, r.stderr)
				continue
			}
			if got := right.last().Header.Get("Authorization"); got != "Bearer "+way.token {
				t.Errorf("%s, %v: asked with %q, want %s", way.name, sub, got, way.token)
			}
		}
	}
}

// P-01
func TestImpersonationReachesTheServer(t *testing.T) {
	server := newAPIServer(t)
	env := []string{"KUBECONFIG=" + kubeconfig(t, server.config("{token: t}"))}
	run(t, env, "status", "--as", "jane", "--as-group", "devs", "--as-uid", "7")
	h := server.last().Header
	if h.Get("Impersonate-User") != "jane" || h.Get("Impersonate-Group") != "devs" || h.Get("Impersonate-Uid") != "7" {
		t.Errorf("headers = %v", h)
	}
	if agent := h.Get("User-Agent"); !strings.HasPrefix(agent, "kubectl-valkey/") {
		t.Errorf("user agent = %q", agent)
	}
}

// P-01
func TestTheNamespaceIsOfTheFlagThenOfTheContextThenDefault(t *testing.T) {
	server := newAPIServer(t)
	inContext := server.config("{token: t}")
	plain := strings.Replace(inContext, ", namespace: team-a", "", 1)
	for _, tt := range []struct {
		config, want string
		flags        []string
	}{
		{inContext, "team-b", []string{"-n", "team-b"}},
		{inContext, "team-a", nil},
		{plain, "default", nil},
	} {
		run(t, []string{"KUBECONFIG=" + kubeconfig(t, tt.config)}, append([]string{"status"}, tt.flags...)...)
		if got, want := server.last().URL.Path, "/apis/valkey.gomomento.com/v1alpha1/namespaces/"+tt.want+"/valkeyclusters"; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
	}
}

// P-01
func TestRequestTimeoutEndsARequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, sub := range subcommands[:5] {
		r := run(t, []string{"KUBECONFIG=/nowhere"}, append(sub, "--server", "http://"+l.Addr().String(), "--request-timeout", "200ms")...)
		wantOneLine(t, r, 1)
		if !strings.Contains(r.stderr, "did not answer in time") {
			t.Errorf("%v: stderr = %q", sub, r.stderr)
		}
	}
}

// P-04: the Lease of the manager is all that is asked for elsewhere.
func TestStatusAsksForTheNamespaceAlone(t *testing.T) {
	a, b := plugintest.Active("main", 1, 1), plugintest.Active("main", 3, 1)
	for i := range b.Nodes {
		b.Nodes[i].Name = fmt.Sprintf("main-bbbb%d", i)
		b.Pods[i].Name = b.Nodes[i].Name
	}
	server := newAPIServer(t, append(inNamespace("a", a), inNamespace("b", b)...)...)
	env := []string{"KUBECONFIG=" + kubeconfig(t, server.config("{token: t}"))}
	r := run(t, env, "status", "main", "-n", "a")
	if r.code != 0 || r.stderr != "" {
		t.Errorf("exit %d with %q", r.code, r.stderr)
	}
	if strings.Contains(r.stdout, "bbbb") || strings.Contains(r.stdout, "Not shown") {
		t.Errorf("the other namespace shows, or something is missing:\n%s", r.stdout)
	}
	for _, n := range a.Nodes {
		if !strings.Contains(r.stdout, n.Name) {
			t.Errorf("node %s is not shown", n.Name)
		}
	}
	for _, path := range server.asked() {
		if !strings.Contains(path, "/namespaces/a/") && path != "/apis/coordination.k8s.io/v1/namespaces/valkey-operator/leases/valkey-operator" {
			t.Errorf("asked for %s, which is outside namespace a", path)
		}
	}
}

// P-08
func TestAuthProviders(t *testing.T) {
	server := newAPIServer(t)
	dir := t.TempDir()
	script := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const expires = "eyJleHAiOjk5OTk5OTk5OTl9" // {"exp":9999999999}
	oidc := "eyJhbGciOiJSUzI1NiJ9." + expires + ".c2ln"
	granting := script("granting", `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-exec"}}'`)
	failing := script("failing", "echo 'please run: corp login' >&2; exit 3")
	exec := func(path string) string {
		return fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}}", path)
	}

	run(t, []string{"KUBECONFIG=" + kubeconfig(t, server.config(fmt.Sprintf(
		"{auth-provider: {name: oidc, config: {client-id: c, id-token: %q, idp-issuer-url: https://issuer.example.com}}}", oidc)))}, "status")
	if got := server.last().Header.Get("Authorization"); got != "Bearer "+oidc {
		t.Errorf("oidc: asked with %q", got)
	}
	run(t, []string{"KUBECONFIG=" + kubeconfig(t, server.config(exec(granting)))}, "status")
	if got := server.last().Header.Get("Authorization"); got != "Bearer from-exec" {
		t.Errorf("exec: asked with %q", got)
	}
	before := len(server.asked())
	r := run(t, []string{"KUBECONFIG=" + kubeconfig(t, server.config(exec(failing)))}, "status")
	if r.code != 1 || !strings.Contains(r.stderr, "please run: corp login") || !strings.Contains(r.stderr, "error: can't log in") {
		t.Errorf("failing exec: exit %d with %q", r.code, r.stderr)
	}
	if len(server.asked()) != before {
		t.Error("failing exec: the server was asked all the same")
	}
}
