package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// permission is what a role has to grant for a request; empty for discovery.
func permission(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 1 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 2 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return ""
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) == 0 {
		return ""
	}
	verb := map[string]string{"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[r.Method]
	switch {
	case len(parts) == 3:
		if parts[2] == "exec" {
			verb = "create" // the web socket's GET is checked for it too
		}
		return verb + " " + parts[0] + "/" + parts[2]
	case len(parts) == 1 && verb == "get" && r.URL.Query().Get("watch") != "":
		verb = "watch"
	case len(parts) == 1 && verb == "get":
		verb = "list"
	}
	return verb + " " + parts[0]
}

// needs are the permissions of one row of the page.
type needs struct{ always, also []string }

var backquoted = regexp.MustCompile("`([^`]+)`")

// documented reads the table of the page: what each command line needs.
func documented(t *testing.T) map[string]needs {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := func(cell string) []string {
		var out []string
		for _, m := range backquoted.FindAllStringSubmatch(cell, -1) {
			verbs, resource, _ := strings.Cut(m[1], " ")
			for verb := range strings.SplitSeq(verbs, ",") {
				out = append(out, verb+" "+resource)
			}
		}
		slices.Sort(out)
		return out
	}
	rows := map[string]needs{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) == 5 && strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			rows[backquoted.FindStringSubmatch(cells[1])[1]] = needs{words(cells[2]), words(cells[3])}
		}
	}
	return rows
}

// lines are the command lines that stand for the rows of the page. A read command
// is expected to end well with what it always needs alone.
var lines = map[string]struct {
	args []string
	read bool
}{
	"status":                     {[]string{"status"}, true},
	"status NAME":                {[]string{"status", "demo"}, true},
	"status NAME -o yaml":        {[]string{"status", "demo", "-o", "yaml"}, true},
	"plan NAME":                  {[]string{"plan", "demo"}, true},
	"create":                     {[]string{"create", "new", "--config", "standard", "--shards", "1", "--replicas", "0", "--priority-class", "high"}, false},
	"failover":                   {[]string{"failover", "demo", "--shard", "0", "--wait=false"}, false},
	"restart":                    {[]string{"restart", "demo", "--wait=false"}, false},
	"pause":                      {[]string{"pause", "demo"}, false},
	"resume":                     {[]string{"resume", "paused"}, false},
	"networkpolicy NAME":         {[]string{"networkpolicy", "demo"}, true},
	"networkpolicy --manager":    {[]string{"networkpolicy", "--manager"}, true},
	"networkpolicy NAME --diff":  {[]string{"networkpolicy", "demo", "--diff"}, false},
	"networkpolicy NAME --apply": {[]string{"networkpolicy", "demo", "--apply"}, false},
	"cli":                        {[]string{"cli", "demo", "--", "PING"}, false},
	"report":                     {nil, true},
	"version":                    {[]string{"version"}, true},
}

func world() []client.Object {
	demo, paused := plugintest.Active("demo", 1, 1), plugintest.Active("paused", 1, 0)
	paused.Cluster.Spec.Paused = true
	all := append(inNamespace("team-a", demo), inNamespace("team-a", paused)...)
	all = append(all, plugintest.Menu()...)
	for _, o := range all {
		// The fixture's ACL file is found by its label in a report.
		if m, ok := o.(*corev1.ConfigMap); ok {
			m.Labels = map[string]string{"app.kubernetes.io/instance": "demo"}
		}
	}
	labels := map[string]string{"kubernetes.io/service-name": "kubernetes"}
	all = append(all,
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
			Spec:       corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1"}, Ports: []corev1.ServicePort{{Port: 443}}},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: labels}, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.168.0.2"}}}, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](6443)}},
		})
	return append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}})
}

func asked(t *testing.T, name string, allow func(string) bool) ([]string, result) {
	t.Helper()
	server := newAPIServer(t, world()...)
	server.allow = allow
	args := lines[name].args
	if name == "report" {
		args = []string{"report", "demo", "--file", filepath.Join(t.TempDir(), "r.zip")}
	}
	r := run(t, []string{"KUBECONFIG=" + kubeconfig(t, server.config("{token: t}"))}, args...)
	var out []string
	server.mu.Lock()
	defer server.mu.Unlock()
	for _, request := range server.requests {
		if p := permission(request); p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out, r
}

// The page says which permissions each command uses, no more and no fewer.
func TestThePermissionsPageSaysWhatEachCommandAsksFor(t *testing.T) {
	rows := documented(t)
	for name := range rows {
		if _, ok := lines[name]; !ok {
			t.Errorf("the page has a row %q that nothing tests", name)
		}
	}
	for name := range lines {
		row, ok := rows[name]
		if !ok {
			t.Errorf("the page has no row %q", name)
			continue
		}
		want := slices.Concat(row.always, row.also)
		slices.Sort(want)
		got, r := asked(t, name, nil)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-page +asked):\n%s\n%s", name, diff, r.stderr)
		}
	}
}

// K-: who may read the custom resources alone can run every command that reads.
func TestReadCommandsWorkWithWhatThePageSaysTheyNeed(t *testing.T) {
	rows := documented(t)
	for name, line := range lines {
		row := rows[name]
		if !line.read {
			// Without even one of them the command fails, and names it.
			for _, missing := range row.always {
				_, r := asked(t, name, func(p string) bool { return p != missing })
				verb, resource, _ := strings.Cut(missing, " ")
				if r.code == 0 || !strings.Contains(r.stderr, fmt.Sprintf("needs %s %s", verb, resource)) {
					t.Errorf("%s without %s: exit %d with %q", name, missing, r.code, r.stderr)
				}
			}
			continue
		}
		_, r := asked(t, name, func(p string) bool { return slices.Contains(row.always, p) })
		if r.code != 0 {
			t.Errorf("%s with %v alone: exit %d with %q", name, row.always, r.code, r.stderr)
		}
	}
}
