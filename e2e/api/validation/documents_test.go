//go:build api

package validation

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// certManager is the module whose CRDs the documents of testdata need.
const certManager = "github.com/cert-manager/cert-manager@v1.21.2"

// The files of testdata are the manifests of the project's first documents, word
// for word. What users copied from there has to go on working.
func TestDocumentedManifestsApplyUnchanged(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "my-app"}}
	if err := server.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	crds := filepath.Join(moduleDir(t, certManager), "deploy", "crds")
	for _, kind := range []string{"issuers", "certificates"} {
		server.MustKubectl(t, "apply", "--server-side", "-f", filepath.Join(crds, "cert-manager.io_"+kind+".yaml"))
	}
	server.MustKubectl(t, "wait", "--for=condition=Established", "crd", "--all")

	for _, name := range []string{"network-policy.yaml", "tls-cluster.yaml", "cert-manager-ca.yaml", "cert-manager-leaf.yaml"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name)
			server.MustKubectl(t, "apply", "--validate=strict", "-f", file)
			server.MustKubectl(t, "apply", "-f", file)
			for _, want := range harness.Objects(t, file) {
				got := &unstructured.Unstructured{}
				got.SetGroupVersionKind(want.GroupVersionKind())
				if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(want), got); err != nil {
					t.Fatal(err)
				}
				if got.GetGeneration() != 1 {
					t.Errorf("applying %s %s again changed it", want.GetKind(), want.GetName())
				}
				// Kubernetes fills in protocols of ports; custom resources get nothing.
				if want.GetKind() == "NetworkPolicy" {
					continue
				}
				if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
					t.Errorf("%s %s is stored with another spec (-want +got):\n%s", want.GetKind(), want.GetName(), diff)
				}
			}
		})
	}
}

// Fragments of a ValkeyCluster apply to one, and again without a change.
func TestDocumentedFragmentsApplyUnchanged(t *testing.T) {
	for _, f := range []struct{ file, subresource, before string }{
		{"tls-fragment.yaml", "", `{spec: {tls: {secretRef: other}}}`},
		{"external-access-fragment.yaml", "", `{}`},
		{"external-endpoints-fragment.yaml", "status", `{}`},
	} {
		t.Run(f.file, func(t *testing.T) {
			cluster := created(t, "ValkeyCluster", f.before)
			text, err := os.ReadFile(filepath.Join("testdata", f.file))
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"patch", "vkc", cluster.GetName(), "-n", cluster.GetNamespace(), "--type=merge", "-p", string(text)}
			if f.subresource != "" {
				args = append(args, "--subresource="+f.subresource)
			}
			if out := server.MustKubectl(t, args...); !strings.HasSuffix(out, " patched\n") {
				t.Errorf("kubectl says %q", out)
			}
			if out := server.MustKubectl(t, args...); !strings.HasSuffix(out, " patched (no change)\n") {
				t.Errorf("patched again, kubectl says %q", out)
			}
		})
	}
}

// The documents' one example sets every field of external access.
func TestDocumentedExternalAccessIsReadCompletely(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "external-access-fragment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := v1alpha1.ValkeyCluster{}
	if err := yaml.UnmarshalStrict(text, &got); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.ExternalAccess{
		Enabled: true, ServiceType: corev1.ServiceTypeNodePort, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
		ServiceAnnotations: map[string]string{}, HostnamePrefix: "shard", Domain: "valkey.example.com",
		PreferredEndpointType: v1alpha1.EndpointHostname,
		Gateway:               &v1alpha1.GatewayAccess{GatewayRef: v1alpha1.GatewayReference{Name: "public-gateway"}, BasePort: 30000},
	}
	if diff := cmp.Diff(want, got.Spec.ExternalAccess); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

// moduleDir is where Go keeps the files of a module, which it fetches once.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	// Outside of any module, or go.sum would be written to.
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("fetch the module %s: %v\n%s", module, err, out)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	return found.Dir
}
