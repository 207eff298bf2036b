//go:build e2e

package suite

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what people see with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatalf("update %s: %v", path, err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read what is expected: %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

var (
	podNames = regexp.MustCompile(`\bc-[0-9a-f]{5}\b`)
	times    = regexp.MustCompile(`\b([0-9]+m)?[0-9]+s\b`)
	progress = regexp.MustCompile(`(?m)^ *TIME  .*(\n *TIME  .*)*`)
	spaces   = regexp.MustCompile(` {2,}`)
	// busy is what a kubelet says when this machine is too busy for it.
	busy = regexp.MustCompile(`(?m)^.*  FailedMount  .*: timed out waiting for the condition\n`)
)

// normalize replaces what differs from run to run.
func normalize(s *harness.Space, text string) string {
	text = strings.NewReplacer(s.Name, "NAMESPACE", s.ValkeyImage.Ref, "IMAGE", s.ValkeyImage.Version, "VERSION").Replace(text)
	return times.ReplaceAllString(podNames.ReplaceAllString(text, "c-NODE"), "TIME")
}

// The plugin as people use it, from the creation of a cluster on.
func TestPluginFromCreateToStatus(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 4)
	created := s.Valkey("create", "c", "--config", harness.ConfigName, "--shards", "2", "--replicas", "1", "--wait", "--timeout", "3m")
	if created.Code != 0 || created.Stderr != "" || strings.Contains(created.Stdout, "\x1b") {
		t.Fatal(created)
	}
	golden(t, "create-wait.txt", progress.ReplaceAllString(normalize(s, created.Stdout), "(progress)"))
	if state := s.Get("c").Status.State; state != v1alpha1.StateActive {
		t.Errorf("create --wait returned while the cluster was %s", state)
	}
	checkProgress(t, created.Stdout)
	s.WaitActive("c")
	s.WaitEvents("c", v1alpha1.ReasonActive, 1)

	t.Run("status", func(t *testing.T) { golden(t, "status.txt", normalizeStatus(t, s, s.Valkey("status", "c").Stdout)) })
	t.Run("status as data", func(t *testing.T) { checkData(t, s) })
	t.Run("status of all namespaces", func(t *testing.T) {
		r := s.RunKubectl(t.Context(), "", "valkey", "status", "-A")
		want := regexp.MustCompile(`(?m)^` + s.Name + ` +c +Active +4/4 +2 +1 +` + harness.ConfigName + ` `)
		if r.Code != 0 || !want.MatchString(r.Stdout) {
			t.Errorf("want a line like %s: %s", want, r)
		}
	})
	t.Run("created again", func(t *testing.T) {
		r := s.Valkey("create", "c", "--config", harness.ConfigName, "--shards", "3", "--replicas", "1")
		refused(t, r, 1, `cluster "c" exists already`, "shards (2 there, 3 asked for)")
	})
	t.Run("names are completed through kubectl", func(t *testing.T) { checkCompletion(t, s) })
}

// checkProgress wants the lines of progress to begin where a cluster begins and to
// count up.
func checkProgress(t *testing.T, text string) {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^ *[0-9ms]+s  .*$`).FindAllString(text, -1)
	if len(lines) == 0 {
		t.Fatalf("no line of progress: %s", text)
	}
	last := -1
	for _, line := range lines {
		var running, of int
		if m := regexp.MustCompile(`pods ([0-9]+)/([0-9]+)`).FindStringSubmatch(line); m != nil {
			_, _ = fmt.Sscan(m[1], &running)
			_, _ = fmt.Sscan(m[2], &of)
			if of != 4 || running < last {
				t.Errorf("the count of pods goes wrong at %q", line)
			}
			last = running
		}
	}
	if last != 4 {
		t.Errorf("the progress ends with %d of 4 pods: %q", last, lines[len(lines)-1])
	}
}

// normalizeStatus also hides where pods are, widths, and the order of the nodes of
// a shard, whose names are random.
func normalizeStatus(t *testing.T, s *harness.Space, text string) string {
	t.Helper()
	text = normalize(s, text)
	for _, pod := range s.Pods("c") {
		var node corev1.Node
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, &node); err != nil {
			t.Fatalf("read the node of pod %s: %v", pod.Name, err)
		}
		place := regexp.MustCompile(` ` + node.Labels[corev1.LabelTopologyZone] + ` +` + node.Name + ` +` + regexp.QuoteMeta(pod.Status.PodIP) + ` `)
		text = place.ReplaceAllString(text, " ZONE  HOST  IP ")
	}
	lines := strings.Split(busy.ReplaceAllString(spaces.ReplaceAllString(text, "  "), ""), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "NODE  ") }) + 1
	end := first
	for strings.HasPrefix(lines[end], "c-NODE") {
		end++
	}
	slices.Sort(lines[first:end])
	return strings.Join(lines, "\n")
}

// checkData wants JSON and YAML to say the same, what the cluster's status says.
func checkData(t *testing.T, s *harness.Space) {
	t.Helper()
	type report struct {
		Name, State, Ready string
		Healthy            bool
		Images             []string
		Shards             []struct {
			Index     int32
			Primary   string
			SlotCount int32
			Replicas  []string
		}
		Nodes      []struct{ Name string }
		Conditions []metav1.Condition
	}
	var fromJSON, fromYAML report
	if r := s.Valkey("status", "c", "-o", "json"); r.Code != 0 || json.Unmarshal([]byte(r.Stdout), &fromJSON) != nil {
		t.Fatalf("status as JSON: %s", r)
	}
	if r := s.Valkey("status", "c", "-o", "yaml"); r.Code != 0 || yaml.Unmarshal([]byte(r.Stdout), &fromYAML) != nil {
		t.Fatalf("status as YAML: %s", r)
	}
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Errorf("JSON and YAML differ:\n%s", diff)
	}
	c := s.Get("c")
	if !fromJSON.Healthy || fromJSON.State != "Active" || fromJSON.Ready != "4/4" || len(fromJSON.Nodes) != 4 || len(fromJSON.Conditions) != len(c.Status.Conditions) {
		t.Errorf("status says %+v", fromJSON)
	}
	if diff := cmp.Diff([]string{s.ValkeyImage.Ref}, fromJSON.Images); diff != "" {
		t.Errorf("images: %s", diff)
	}
	for i, shard := range c.Status.Shards {
		got := fromJSON.Shards[i]
		if got.Primary != shard.Primary || got.SlotCount != shard.SlotCount || !slices.Equal(got.Replicas, shard.Replicas) {
			t.Errorf("status says of shard %d %+v, the cluster %+v", i, got, shard)
		}
	}
}

// refused wants one line on stderr for the problem, nothing on stdout.
func refused(t *testing.T, r harness.Result, code int, words ...string) {
	t.Helper()
	if r.Code != code || r.Stdout != "" {
		t.Errorf("want exit code %d and nothing on stdout: %s", code, r)
	}
	for line := range strings.Lines(r.Stderr) {
		if !strings.HasPrefix(line, "error: ") && !strings.HasPrefix(line, "note: ") {
			t.Errorf("line of another kind on stderr: %q", line)
		}
	}
	if err := harness.Contains(r.Stderr, words...); err != nil {
		t.Error(err)
	}
}

// P-06: what is wrong is said in one line with what exists, and the exit code tells
// the kind of failure. Nothing is created.
func TestCreateNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 0)
	s.Publish(role(s.Name + "-role"))
	users := filepath.Join(t.TempDir(), "users.yaml")
	list := "- username: app\n  passwordHashes: [" + someHash + "]\n  permissions:\n  - {roleRef: no-such-role, keys: [{pattern: '*', access: read}]}\n"
	if err := os.WriteFile(users, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(args ...string) []string {
		return append([]string{"create", "c", "--shards", "1", "--replicas", "0"}, args...)
	}
	tests := map[string]struct {
		args  []string
		code  int
		words []string
	}{
		"a config that doesn't exist":      {with("--config", "no-such-config"), 1, []string{"no-such-config", "large", "small", "standard"}},
		"a role that doesn't exist":        {with("--config", "standard", "--acl-file", users), 1, []string{"no-such-role", s.Name + "-role", "read-only"}},
		"a TLS Secret that doesn't exist":  {with("--config", "standard", "--tls-secret", "no-such-secret"), 1, []string{"no-such-secret", s.Name}},
		"a zone that doesn't exist":        {with("--config", "standard", "--zones", "no-such-zone"), 1, []string{"no-such-zone"}},
		"a priority class that is unknown": {with("--config", "standard", "--priority-class", "no-such-class"), 1, []string{"no-such-class"}},
		"a name that is too long":          {[]string{"create", strings.Repeat("a", 54), "--config", "standard", "--shards", "1", "--replicas", "0"}, 2, []string{"53"}},
		"a name with capital letters":      {[]string{"create", "Demo", "--config", "standard", "--shards", "1", "--replicas", "0"}, 2, []string{`"Demo"`, "lower-case"}},
		"no shards":                        {[]string{"create", "c", "--config", "standard", "--shards", "0", "--replicas", "0"}, 2, []string{"--shards is 0", "1000"}},
		"too many replicas":                {[]string{"create", "c", "--config", "standard", "--shards", "1", "--replicas", "6"}, 2, []string{"--replicas is 6", "0 to 5"}},
		"no config":                        {[]string{"create", "c", "--shards", "1", "--replicas", "0"}, 2, []string{"--config"}},
		"a flag that doesn't exist":        {with("--config", "standard", "--no-such-flag"), 2, []string{"--no-such-flag"}},
		"a cluster that doesn't exist":     {[]string{"status", "no-such-cluster"}, 1, []string{"no-such-cluster", s.Name}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { refused(t, s.Valkey(tt.args...), tt.code, tt.words...) })
	}
	var clusters v1alpha1.ValkeyClusterList
	if err := s.Client.List(t.Context(), &clusters); err != nil {
		t.Fatal(err)
	}
	for i := range clusters.Items {
		if clusters.Items[i].Namespace == s.Name {
			t.Errorf("cluster %s was created all the same", clusters.Items[i].Name)
		}
	}
}

func TestVersionNamesPluginManagerAndAPI(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 0)
	r := s.RunKubectl(t.Context(), "", "valkey", "version", "-o", "json")
	var report struct {
		Client struct{ Version string }
		Server struct {
			Kubernetes  string
			APIVersions []string
			Manager     struct {
				Image         string
				Ready, Wished int32
			}
		}
	}
	if r.Code != 0 || json.Unmarshal([]byte(r.Stdout), &report) != nil {
		t.Fatal(r)
	}
	server := report.Server
	if report.Client.Version == "" || server.Manager.Image == "" || server.Manager.Wished != 1 || !strings.HasPrefix(server.Kubernetes, "v1.") {
		t.Errorf("version says %+v", report)
	}
	if diff := cmp.Diff([]string{v1alpha1.GroupVersion.Version}, server.APIVersions); diff != "" {
		t.Errorf("API versions: %s", diff)
	}
	text := s.RunKubectl(t.Context(), "", "valkey", "version")
	if err := harness.Contains(text.Stdout, report.Client.Version, server.Manager.Image, server.Kubernetes); err != nil {
		t.Error(err)
	}
}

// checkCompletion sets the shim up as its help says, and presses TAB as kubectl's
// own completion does.
func checkCompletion(t *testing.T, s *harness.Space) {
	t.Helper()
	shim := s.RunKubectl(t.Context(), "", "valkey", "completion", "shim")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl_complete-valkey"), []byte(shim.Stdout), 0o700); err != nil {
		t.Fatal(err)
	}
	press := func(words ...string) string {
		cmd := s.Command(t.Context(), append([]string{"__complete", "valkey"}, words...)...)
		for i, v := range cmd.Env {
			if path, ok := strings.CutPrefix(v, "PATH="); ok {
				cmd.Env[i] = "PATH=" + dir + string(os.PathListSeparator) + path
			}
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("complete %q: %v", words, err)
		}
		return string(out)
	}
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"sta"}, "status"},
		{[]string{"status", "-n", s.Name, ""}, "c\n"},
		{[]string{"create", "x", "--config", "sta"}, "standard"},
		{[]string{"status", "-o", ""}, "json"},
	} {
		if got := press(tt.words...); !strings.Contains("\n"+got, "\n"+tt.want) {
			t.Errorf("completing %q offers %q, want %q", tt.words, got, tt.want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := s.RunKubectl(t.Context(), "", "valkey", "completion", shell); r.Code != 0 || len(r.Stdout) < 1000 {
			t.Errorf("completion for %s: exit code %d, %d characters", shell, r.Code, len(r.Stdout))
		}
	}
}
