//go:build api

package install

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/root"
)

// plugin runs the plugin as a cluster administrator.
func plugin(t *testing.T, server *harness.Server, args ...string) string {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	surroundings := root.Surroundings{Streams: streams, Clock: clock.RealClock{}, Getenv: func(string) string { return "" }}
	if code := root.Execute(t.Context(), surroundings, append(args, "--kubeconfig", server.KubeconfigPath())); code != 0 {
		t.Fatalf("%v: exit %d\n%s%s", args, code, out, errOut)
	}
	return out.String()
}

// The plugin installs what the manifests do, says what it would do before, changes
// nothing the second time, and leaves alone what is the users' own.
func TestThePluginInstalls(t *testing.T) {
	server := start(t)
	dry := plugin(t, server, "install", "--starter", "--dry-run=server")
	if got := server.MustKubectl(t, "get", "crd,namespaces", "-o", "name"); strings.Contains(got, "valkey") {
		t.Errorf("a dry run left %s", got)
	}
	first := plugin(t, server, "install", "--starter")
	if a, b := strings.Count(dry, "\n"), strings.Count(first, " created\n"); a != b || b < 20 {
		t.Errorf("the dry run names %d objects, %d were created:\n%s", a, b, first)
	}
	if out := server.MustKubectl(t, "diff", "-f", harness.DeployPath(t, "starter.yaml")); out != "" {
		t.Errorf("the menu is another than the manifest's: %s", out)
	}
	server.MustKubectl(t, "patch", "configmap", "valkey-operator-config", "-n", "valkey-operator", "-p", `{"data":{"DEFAULT_ZONE_SPREAD":"required"}}`)
	before := generations(t, server, harness.DeployPath(t, "install.yaml"))
	again := plugin(t, server, "install", "--starter")
	for line := range strings.Lines(again) {
		if !strings.HasSuffix(line, " unchanged\n") && !strings.HasSuffix(line, " left as it is\n") {
			t.Errorf("the second run says %q", line)
		}
	}
	if after := generations(t, server, harness.DeployPath(t, "install.yaml")); after != before {
		t.Errorf("the second run changed objects:\n%s\nbecame\n%s", before, after)
	}
	if got := server.MustKubectl(t, "get", "configmap", "valkey-operator-config", "-n", "valkey-operator", "-o", "jsonpath={.data.DEFAULT_ZONE_SPREAD}"); got != "required" {
		t.Errorf("the setting is %q, want what the user wrote", got)
	}
	changed := plugin(t, server, "install", "--image", "registry.example.com/manager:v9")
	if !strings.Contains(changed, "deployment.apps/valkey-operator configured\n") {
		t.Errorf("another image: %s", changed)
	}
}
