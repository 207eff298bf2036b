package version

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/version"
)

var build = version.Info{Version: "v0.2.0", Commit: "0123abc", Date: "2026-06-01T12:00:00Z", GoVersion: "go1.26.8", Platform: "linux/amd64"}

// served answers the two requests about versions.
func served(t *testing.T, installed bool) discovery.DiscoveryInterface {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch {
		case r.URL.Path == "/version":
			answer = apiversion.Info{GitVersion: "v1.37.2"}
		case r.URL.Path == "/apis/valkey.gomomento.com" && installed:
			answer = metav1.APIGroup{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: "valkey.gomomento.com",
				Versions:         []metav1.GroupVersionForDiscovery{{Version: "v1alpha1"}, {Version: "v1beta1"}},
				PreferredVersion: metav1.GroupVersionForDiscovery{Version: "v1beta1"},
			}
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: s.URL})
}

func manager() client.Object {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: kube.ManagerNamespace, Name: kube.ManagerDeployment},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "manager", Image: "kubectl-valkey/manager:v0.2.0"}},
		}}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
	}
}

func TestVersionsOfTheServer(t *testing.T) {
	denied := interceptor.NewClient(plugintest.Client(manager()), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return plugintest.Forbidden("get", "deployments", key.Namespace)
		},
	})
	tests := []struct {
		golden    string
		client    client.Reader
		installed bool
	}{
		{"installed", plugintest.Client(manager()), true},
		{"nothing", plugintest.Client(), false},
		{"forbidden", denied, true},
	}
	for _, tt := range tests {
		for _, format := range []string{"", "json", "yaml"} {
			streams, out, _ := plugintest.Streams(strings.NewReader(""), false)
			o := &Options{streams: streams, output: format, build: build, client: tt.client, discovery: served(t, tt.installed)}
			if err := o.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			plugintest.Golden(t, tt.golden+"."+map[string]string{"": "txt"}[format]+format, out.String())
		}
	}
}

func TestAnUnreachableServerDoesNotHideThePluginsOwnVersion(t *testing.T) {
	streams, out, errOut := plugintest.Streams(strings.NewReader(""), false)
	o := &Options{streams: streams, client: plugintest.Client(), discovery: discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: "http://127.0.0.1:1"})}
	code := exit.Report(errOut, o.Run(t.Context()))
	if code != exit.Failed || !strings.HasPrefix(out.String(), "Plugin:") || !strings.HasPrefix(errOut.String(), "error: can't reach the API server http://127.0.0.1:1:") {
		t.Errorf("exit %d with %q and %q", code, out, errOut)
	}
}

func TestWithoutAKubeconfigThePluginsOwnVersionIsShown(t *testing.T) {
	plugintest.Kubeconfig(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	build := func(access *kube.Access, _ *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		return NewCommand(access, streams)
	}
	out, errOut, code := plugintest.Run(t, build, false)
	if code != exit.Failed || !strings.HasPrefix(out, "Plugin:") || !strings.Contains(errOut, "no cluster is configured") {
		t.Errorf("exit %d with %q and %q", code, out, errOut)
	}
}

func TestTheClientsVersionAloneAsksNobody(t *testing.T) {
	streams, out, _ := plugintest.Streams(strings.NewReader(""), false)
	o := &Options{streams: streams, clientOnly: true}
	if err := o.Run(t.Context()); err != nil || strings.Contains(out.String(), "Kubernetes") {
		t.Errorf("%v with %q", err, out)
	}
}
