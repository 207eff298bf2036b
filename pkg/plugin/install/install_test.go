package install

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/version"
)

func build(c client.Client, v string) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		return (&Options{access: access, flags: flags, streams: streams, clock: clock.RealClock{}, client: c, build: version.Info{Version: v}}).command()
	}
}

func TestDryRunOfTheClientNeedsNoServer(t *testing.T) {
	out, errOut, code := plugintest.Run(t, build(nil, "v1.2.3"), false, "--dry-run=client", "--starter")
	if code != exit.OK || errOut != "" {
		t.Fatalf("exit %d with %q", code, errOut)
	}
	plugintest.Golden(t, "dry-run.txt", out)
	out, _, code = plugintest.Run(t, build(nil, "v1.2.3"), false, "--dry-run=client", "-o", "yaml")
	if code != exit.OK || !strings.Contains(out, "image: kubectl-valkey/manager:v1.2.3\n") || !strings.Contains(out, "app: valkey-operator\n") || strings.Contains(out, "kind: ValkeyConfig\n") && strings.Contains(out, "imageRef: valkey-9") {
		t.Errorf("exit %d with %.3000s", code, out)
	}
	out, _, _ = plugintest.Run(t, build(nil, "v1.2.3"), false, "--dry-run=client", "-o", "json", "--image", "r.example.com/m:1")
	if !strings.Contains(out, `"image": "r.example.com/m:1"`) {
		t.Errorf("the image that was asked for is not there: %.1000s", out)
	}
	out, _, _ = plugintest.Run(t, build(nil, "(devel)"), false, "--dry-run=client", "-o", "yaml")
	if !strings.Contains(out, "image: kubectl-valkey/manager:v0.1.0\n") {
		t.Error("a build without a version names another image than the manifests")
	}
}

func TestInstallTwice(t *testing.T) {
	c := plugintest.Client()
	out, errOut, code := plugintest.Run(t, build(c, "v1.2.3"), false, "--starter")
	if code != exit.OK || errOut != "" {
		t.Fatalf("exit %d with %q", code, errOut)
	}
	plugintest.Golden(t, "first.txt", out)
	var d appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: kube.ManagerNamespace, Name: kube.ManagerDeployment}, &d); err != nil {
		t.Fatal(err)
	}
	if got := d.Spec.Template.Spec.Containers[0].Image; got != "kubectl-valkey/manager:v1.2.3" {
		t.Errorf("the image is %s", got)
	}

	// What users changed stays; the rest follows the version.
	var settings corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: kube.ManagerNamespace, Name: "valkey-operator-config"}, &settings); err != nil {
		t.Fatal(err)
	}
	settings.Data["DEFAULT_ZONE_SPREAD"] = "required"
	if err := c.Update(t.Context(), &settings); err != nil {
		t.Fatal(err)
	}
	var config v1alpha1.ValkeyConfig
	if err := c.Get(t.Context(), client.ObjectKey{Name: "small"}, &config); err != nil {
		t.Fatal(err)
	}
	out, errOut, code = plugintest.Run(t, build(c, "v1.3.0"), false, "--starter")
	if code != exit.OK || errOut != "" {
		t.Fatalf("exit %d with %q", code, errOut)
	}
	for _, line := range []string{"configmap/valkey-operator-config left as it is", "deployment.apps/valkey-operator configured", "valkeyconfig.valkey.gomomento.com/small left as it is"} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("the second run does not say %q:\n%s", line, out)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(&settings), &settings); err != nil || settings.Data["DEFAULT_ZONE_SPREAD"] != "required" {
		t.Errorf("the setting is %q, %v", settings.Data["DEFAULT_ZONE_SPREAD"], err)
	}
}

func TestWaiting(t *testing.T) {
	_, errOut, code := plugintest.Run(t, build(plugintest.Client(), "v1.2.3"), false, "--wait", "--timeout", "1ms")
	if code != exit.TimedOut || !strings.Contains(errOut, "kubectl-valkey/manager:v1.2.3 where the Kubernetes nodes can pull it") {
		t.Errorf("exit %d with %q", code, errOut)
	}
}

func TestWrongUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"takes no arguments":            {"now"},
		"don't go together":             {"--wait", "--dry-run=server"},
		"--timeout needs --wait":        {"--timeout", "1s"},
		"is no image":                   {"--image", ""},
		"--dry-run \"x\" is not known":  {"--dry-run=x"},
		"--output \"xml\" is not known": {"-o", "xml"},
	} {
		_, errOut, code := plugintest.Run(t, build(nil, "v1"), false, args...)
		if code != exit.Usage || !strings.Contains(errOut, want) {
			t.Errorf("%v: exit %d with %q, want %q", args, code, errOut, want)
		}
	}
}

// S0-42, S0-45: segmentation is the user's, and nothing stands in the way of a
// request to the API server.
func TestNothingIsInstalledThatListensOrFilters(t *testing.T) {
	objects, err := manifests("", true)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) < 20 {
		t.Fatalf("only %d objects are installed", len(objects))
	}
	for _, o := range objects {
		switch kind := o.GetKind(); {
		case kind == "NetworkPolicy", kind == "Service", strings.HasSuffix(kind, "WebhookConfiguration"), strings.HasPrefix(kind, "ValidatingAdmissionPolicy"):
			t.Errorf("%s %s is installed", kind, o.GetName())
		}
	}
}
