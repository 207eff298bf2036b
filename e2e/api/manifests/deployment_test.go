//go:build api

package manifests

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
)

func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	return harness.Find[appsv1.Deployment](t, harness.Objects(t, harness.DeployPath(t, "install.yaml")), "Deployment", "valkey-operator")
}

func container(t *testing.T) corev1.Container {
	t.Helper()
	containers := deployment(t).Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("the manager's pod has %d containers, want 1", len(containers))
	}
	return containers[0]
}

// warnings collects what the API server warns of.
type warnings struct {
	sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

// The namespace that install.yaml makes enforces the same (O-01).
func TestManagerPassesTheRestrictedStandard(t *testing.T) {
	said := &warnings{}
	config := rest.CopyConfig(server.Config)
	config.WarningHandler = said
	c := server.ClientFor(t, config)
	namespace := server.Namespace(t, map[string]string{
		"pod-security.kubernetes.io/enforce":         "restricted",
		"pod-security.kubernetes.io/enforce-version": "latest",
		"pod-security.kubernetes.io/warn":            "restricted",
		"pod-security.kubernetes.io/warn-version":    "latest",
	})
	d := deployment(t)
	d.Namespace = namespace
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager", Labels: d.Spec.Template.Labels},
		Spec:       d.Spec.Template.Spec,
	}
	for _, o := range []client.Object{d, pod} {
		if err := c.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("refused: %v", err)
		}
	}
	if len(said.texts) > 0 {
		t.Errorf("the API server warns: %q", said.texts)
	}

	// A pod that breaks the standard shows that the namespace would have said so.
	pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = ptr.To(true)
	if err := c.Create(t.Context(), pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "allowPrivilegeEscalation") {
		t.Errorf("a pod with privilege escalation gets %v, want a refusal by the standard", err)
	}
}

func TestInstallNamespaceEnforcesTheRestrictedStandard(t *testing.T) {
	ns := &corev1.Namespace{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: harness.ManagerNamespace}, ns); err != nil {
		t.Fatal(err)
	}
	if got := ns.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("namespace %s enforces %q, want restricted", ns.Name, got)
	}
}

func TestManagerListensOnNothing(t *testing.T) {
	c := container(t)
	if len(c.Ports) > 0 {
		t.Errorf("the container declares ports %v", c.Ports)
	}
	if c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil {
		t.Error("the container has a probe: nothing could answer it")
	}
	for _, arg := range append(c.Command, c.Args...) {
		if strings.Contains(arg, "bind-address") {
			t.Errorf("argument %s binds a port", arg)
		}
	}
	for _, o := range harness.Objects(t, harness.DeployPath(t, "install.yaml")) {
		switch kind := o.GetKind(); kind {
		case "Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService", "NetworkPolicy":
			t.Errorf("install.yaml holds the %s %s", kind, o.GetName())
		}
	}
}

func TestManagerIsSelectedByTheDocumentedLabel(t *testing.T) {
	d := deployment(t)
	want := map[string]string{"app": "valkey-operator"}
	if diff := cmp.Diff(want, d.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	if got := d.Spec.Template.Labels["app"]; got != "valkey-operator" {
		t.Errorf("the pod's label app is %q, want valkey-operator", got)
	}
	// A pod that looked like a server would be let through by policies for servers.
	if got := d.Spec.Template.Labels["app.kubernetes.io/name"]; got == "valkey" {
		t.Error("the manager's pod carries the label of Valkey pods")
	}
}

// The image is loaded or mirrored by who installs; no registry is taken for
// granted.
func TestImagesNameNoRegistry(t *testing.T) {
	images := []string{container(t).Image}
	for _, o := range harness.Objects(t, harness.DeployPath(t, "starter.yaml")) {
		if spec, ok := o.Object["spec"].(map[string]any); ok && o.GetKind() == "ValkeyImage" {
			repository, _ := spec["repository"].(string)
			images = append(images, repository)
		}
	}
	if len(images) < 2 {
		t.Fatalf("images are %q, want the manager's and at least one of the menu", images)
	}
	for _, image := range images {
		host, _, _ := strings.Cut(image, "/")
		if strings.ContainsAny(host, ".:") || host == "localhost" {
			t.Errorf("image %s names a registry", image)
		}
	}
}

func TestManagerReadsItsSettingsFromTheConfigMap(t *testing.T) {
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: harness.ManagerNamespace, Name: "valkey-operator-config"}
	if err := server.Client.Get(t.Context(), key, config); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"DEFAULT_ZONE_SPREAD": "bestEffort", "CLUSTER_DOMAIN": "cluster.local", "WATCH_NAMESPACES": ""}
	if diff := cmp.Diff(want, config.Data); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	from := container(t).EnvFrom
	if len(from) != 1 || from[0].ConfigMapRef == nil || from[0].ConfigMapRef.Name != config.Name {
		t.Errorf("the container reads its environment from %v, want ConfigMap %s", from, config.Name)
	}
}

func TestManifestsAreBuiltFromTheirSources(t *testing.T) {
	for _, name := range []string{"install", "starter"} {
		built := harness.ParseObjects(t, []byte(server.MustKubectl(t, "kustomize", harness.DeployPath(t, name))))
		committed := harness.Objects(t, harness.DeployPath(t, name+".yaml"))
		if diff := cmp.Diff(built, committed); diff != "" {
			t.Errorf("deploy/%s.yaml is not what its sources make; run make generate (-built +committed):\n%s", name, diff)
		}
	}
}
