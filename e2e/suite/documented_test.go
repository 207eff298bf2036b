//go:build e2e

package suite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

var shellBlock = regexp.MustCompile("(?s)\n *```sh\n(.*?\n) *```")

// documented are the commands of all pages that a cluster can be shown, each once,
// in the order of the pages.
func documented(t *testing.T, root string) []string {
	t.Helper()
	pages := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/reference/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	var all []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				line, _, _ = strings.Cut(line, " #")
				line = strings.TrimSpace(line)
				ours := strings.HasPrefix(line, "kubectl ") || strings.HasPrefix(line, "valkey-cli ")
				if ours && !slices.Contains(all, line) {
					all = append(all, line)
				}
			}
		}
	}
	all = slices.DeleteFunc(all, shownElsewhere)
	if len(all) < 25 {
		t.Fatalf("only %d commands found: %q", len(all), all)
	}
	return all
}

// shownElsewhere reports whether a command takes a TLS cluster or cert-manager. The
// first are run by TestVerifyTLSFromTheHost, the others by
// TestCertManagerIssuesAndRenews.
func shownElsewhere(line string) bool {
	return slices.ContainsFunc([]string{
		"kubectl valkey verify-tls ", "kubectl valkey certificate ", "kubectl wait --for=condition=Ready certificate/",
		"valkey-cli -h demo.team-a.svc.cluster.local ",
	}, func(start string) bool { return strings.HasPrefix(line, start) })
}

// here makes a documented command one about the cluster of this test. What would
// change what other tests use, or end this cluster, is checked by the API server and
// not stored.
func here(s *harness.Space, line string) string {
	line = strings.NewReplacer(
		"-n team-a", "-n "+s.Name, "demo.team-a.svc", "demo."+s.Name+".svc", "--config standard", "--config "+harness.ConfigName,
		"get secret demo-tls", "get secret another-tls", "> ca.crt", "> /dev/null", // the checkout stays as it is
	).Replace(line)
	if strings.Contains(line, "demo") && !strings.Contains(line, " -n ") && !strings.HasPrefix(line, "valkey-cli") {
		line += " -n " + s.Name
	}
	for _, changes := range []string{
		"kubectl apply ", "kubectl delete ", "kubectl create ", "kubectl patch ", "kubectl scale ",
		"kubectl valkey create ", "kubectl valkey install ",
	} {
		if strings.HasPrefix(line, changes) && !strings.Contains(line, "--dry-run") {
			line = strings.ReplaceAll(line, " --wait", "") + " --dry-run=server"
		}
	}
	if strings.HasPrefix(line, "kubectl valkey create demo") {
		line = strings.Replace(line, "create demo", "create another", 1)
		line = strings.Replace(line, "--tls-secret demo-tls", "--tls-secret another-tls", 1)
	}
	if strings.HasPrefix(line, "kubectl valkey external ") {
		line += " --dry-run=client" // its steps are walked by the tests of external access
	}
	if strings.HasPrefix(line, "kubectl valkey status") {
		line = strings.TrimSuffix(line, " -w") // it follows until it is interrupted
	}
	return line
}

// Whoever follows the pages finds that every command does what it should.
func TestDocumentedCommandsRun(t *testing.T) {
	t.Parallel()
	e := harness.Start(t)
	s := e.Space(t, 11)
	s.Create(s.Cluster("demo", 2, 1))
	s.Create(s.TLSSecret("another-tls", harness.NewAuthority(t), s.Names("another")...))
	s.WaitActive("demo")
	startLabelled(s, "")
	for _, line := range documented(t, e.Root) {
		command := here(s, line)
		if args, ok := strings.CutPrefix(command, "valkey-cli "); ok {
			// One without a command reads them from its standard input.
			if out, err := s.CLI("PING\n", strings.Fields(args)...); err != nil || strings.Contains(out, "ERR") {
				t.Errorf("%s: %v: %s", command, err, out)
			}
			continue
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", command)
		cmd.Env, cmd.Dir = e.Command(t.Context()).Env, e.Root
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out.String())
		}
		if strings.HasPrefix(command, "kubectl valkey failover") || strings.HasPrefix(command, "kubectl valkey resume") {
			s.WaitActive("demo")
		}
	}
	s.WaitFormed("demo", 2, 1)
}

// K-: the rest of the plugin as it meets real servers: valkey-cli in a pod, with TLS
// and users, and a report without what the cluster's Secrets hold.
func TestCLIAndReport(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 3)
	s.Create(s.TLSSecret("cert", harness.NewAuthority(t), s.Names("c")...))
	c := s.Cluster("c", 2, 0)
	c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	const password = "a password that nobody guesses"
	role := &v1alpha1.ValkeyRole{ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-all"}, Spec: v1alpha1.ValkeyRoleSpec{
		Categories: []v1alpha1.CategoryRule{{Name: "all", Access: v1alpha1.AccessAllow}},
	}}
	s.Publish(role)
	digest := sha256.Sum256([]byte(password))
	c.Spec.ACL = []v1alpha1.ACLBinding{{
		Username: "app", PasswordHashes: []v1alpha1.PasswordHash{v1alpha1.PasswordHash(hex.EncodeToString(digest[:]))},
		Permissions: []v1alpha1.Permission{{RoleRef: role.Name, Keys: []v1alpha1.KeyPermission{{Pattern: "*", Access: v1alpha1.KeyReadWrite}}}},
	}}
	s.Create(c)
	s.WaitActive("c")

	for i, key := range []string{"a", "b", "c", "d"} { // of both shards: redirects are followed, and verified
		// Redirects give names of pods, which DNS may not have yet.
		s.Eventually(fmt.Sprintf("key %d is written", i), time.Minute, func() error {
			r := s.RunKubectl(t.Context(), password+"\n", "valkey", "cli", "c", "--valkey-user", "app", "-n", s.Name, "--", "SET", key, "value")
			if r.Code != 0 || !strings.Contains(r.Stdout, "OK") {
				return fmt.Errorf("%s", r)
			}
			return nil
		})
	}
	r := s.RunKubectl(t.Context(), password+"\nGET a\nACL WHOAMI\n", "valkey", "cli", "c", "--valkey-user", "app", "--shard", "1", "-n", s.Name)
	if r.Code != 0 || harness.Contains(r.Stdout, "value", "app") != nil {
		t.Errorf("commands on standard input: %s", r)
	}
	r = s.RunKubectl(t.Context(), "", "valkey", "cli", "c", "-n", s.Name, "--", "GET", "a")
	if !strings.Contains(r.Stdout+r.Stderr, "NOAUTH") {
		t.Errorf("without a user: %s", r)
	}

	file := filepath.Join(t.TempDir(), "report.tar.gz")
	if r := s.Valkey("report", "c", "--file", file); r.Code != 0 {
		t.Fatal(r)
	}
	out, err := exec.CommandContext(t.Context(), "tar", "-xzOf", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.Contains(string(out), "kind: ValkeyCluster", "valkey.conf", "tls-port 6379", "user app on resetpass #(removed)", "action done"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"c-operator-auth", "c-operator-tls", "cert"} {
		for key, value := range s.SecretData(name) {
			if text := strings.TrimSpace(string(value)); strings.Contains(key, "key") || strings.Contains(key, "password") {
				if strings.Contains(string(out), text) {
					t.Errorf("the report holds %s of Secret %s", key, name)
				}
			}
		}
	}
	for _, hash := range c.Spec.ACL[0].PasswordHashes {
		if strings.Contains(string(out), string(hash)) {
			t.Error("the report holds the hash of a password")
		}
	}
}
