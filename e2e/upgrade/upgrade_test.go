//go:build e2e

// Package upgrade moves a Kubernetes between two builds of the product while a
// cluster is in use: a release and the checkout. It goes there, back, without a
// manager for a while, and at last takes everything away. It runs after the suite,
// whose manager nobody may exchange.
package upgrade

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

func TestMain(m *testing.M) { harness.Main(m, false) }

// older is the version of the release that the checkout replaces.
const older = "v0.0.1"

// U-02: a change of the manager replaces no pod, and no write fails.
// What a person has set stays, and the next manager goes on where the last one
// ended. Without a manager clusters serve.
func TestUpgradeDowngradeAndRemoval(t *testing.T) {
	e := harness.Start(t)
	if !e.Local {
		e.CannotCheck(t, "an upgrade between two builds, whose images have to be loaded")
		return
	}
	release := buildRelease(t)
	if err := clusterctl.Load(t.Context(), filepath.Join(release, "manager-image_"+older+"_linux_"+runtime.GOARCH+".tar")); err != nil {
		t.Fatalf("load the older image: %v", err)
	}
	s := e.Space(t, 8)
	u := &stay{t: t, Space: s, older: filepath.Join(release, "kubectl-valkey"), newer: filepath.Join(s.Root, "bin", "kubectl-valkey")}
	s.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Name, Name: "mine"}})
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1)
	w := s.StartWriter("c", "--ranges", harness.Ranges(3), "--every", "10ms", "--patience", "5s")
	menu := u.menu()

	w.Mark("downgrade")
	u.replace(u.older, older)
	u.scale(1, 2)

	w.Mark("upgrade")
	u.replace(u.newer, "")
	u.scale(2, 1)

	w.Mark("no manager")
	u.removeManager()
	w.Mark("installed again")
	u.install(u.newer, "--starter")
	u.sameAsBefore("the manager was installed again")
	if now := u.menu(); !maps.Equal(now, menu) {
		t.Errorf("the menu was %v and is %v", menu, now)
	}
	w.WantNothingLost(w.Stop(), false)
	u.removeAll()
}

// buildRelease makes the older release and unpacks its plugin.
func buildRelease(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, "make", "-C", "../..", "release", "RELEASE="+dir, "VERSION="+older, "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH, "MANAGER_ARCHES="+runtime.GOARCH)
	run(t, "tar", "-C", dir, "-xzf", filepath.Join(dir, "kubectl-valkey_"+older+"_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	return dir
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// stay is a namespace whose cluster outlives managers.
type stay struct {
	t *testing.T
	*harness.Space
	older, newer string // plugins
	pods         map[string]types.UID
}

// install runs a plugin's install.
func (u *stay) install(plugin string, args ...string) {
	u.t.Helper()
	before, err := u.ManagerPods(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	cmd := exec.CommandContext(u.t.Context(), plugin, append([]string{"install", "--wait"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+u.Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		u.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	last := ""
	if len(before) > 0 {
		last = before[0].Name
	}
	if _, err := u.WaitForManager(u.t.Context(), last); err != nil {
		u.t.Fatal(err)
	}
}

// replace exchanges the manager for that of a plugin; no version is that of the
// checkout.
func (u *stay) replace(plugin, version string) {
	u.t.Helper()
	u.remember()
	u.install(plugin)
	if version == "" {
		version = strings.TrimPrefix(os.Getenv("E2E_MANAGER_IMAGE"), "kubectl-valkey/manager:")
	}
	if r := u.Valkey("version"); r.Code != 0 || harness.Contains(r.Stdout, version) != nil {
		u.t.Errorf("the manager is to be %s: %s", version, r)
	}
	var settings corev1.ConfigMap
	if err := u.Client.Get(u.t.Context(), client.ObjectKey{Namespace: harness.ManagerNamespace, Name: "valkey-operator-config"}, &settings); err != nil {
		u.t.Fatal(err)
	}
	if got := settings.Data["LOG_LEVEL"]; got != "debug" {
		u.t.Errorf("the log level that was set to debug is %q", got)
	}
	u.sameAsBefore("the manager is " + version)
}

// scale changes the replicas of a shard, which shows that the manager works.
func (u *stay) scale(from, to int32) {
	u.t.Helper()
	u.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ReplicasPerShard = to })
	u.WaitActive("c")
	u.WaitFormed("c", 3, int(to))
	kept := 0
	for name, uid := range u.podUIDs() {
		if u.pods[name] == uid {
			kept++
		}
	}
	if want := 3 * int(1+min(from, to)); kept != want {
		u.t.Errorf("%d pods outlived the change from %d to %d replicas, want %d", kept, from, to, want)
	}
	u.remember()
}

func (u *stay) podUIDs() map[string]types.UID {
	out := map[string]types.UID{}
	for _, p := range u.Pods("c") {
		if p.DeletionTimestamp.IsZero() {
			out[p.Name] = p.UID
		}
	}
	return out
}

func (u *stay) remember() { u.pods = u.podUIDs() }

// sameAsBefore waits until the manager that runs now has taken note of a pause and of
// its end, and compares pods.
func (u *stay) sameAsBefore(when string) {
	u.t.Helper()
	for _, paused := range []bool{true, false} {
		u.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = paused })
		u.Eventually("the manager takes note", time.Minute, func() error {
			if c := u.Get("c"); c.Status.ObservedGeneration != c.Generation {
				return fmt.Errorf("it has seen generation %d of %d", c.Status.ObservedGeneration, c.Generation)
			}
			return nil
		})
	}
	u.WaitActive("c")
	if now := u.podUIDs(); !maps.Equal(now, u.pods) {
		u.t.Errorf("%s: the pods were %v and are %v", when, u.pods, now)
	}
}

// menu returns the versions of all objects of the menu.
func (u *stay) menu() map[string]string {
	u.t.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{&v1alpha1.ValkeyConfigList{}, &v1alpha1.ValkeyImageList{}, &v1alpha1.ValkeyRoleList{}} {
		if err := u.Client.List(u.t.Context(), list); err != nil {
			u.t.Fatal(err)
		}
		// Every list that was read has items that are objects.
		_ = meta.EachListItem(list, func(item k8sruntime.Object) error {
			object, err := meta.Accessor(item)
			if err == nil {
				out[fmt.Sprintf("%T %s", item, object.GetName())] = object.GetResourceVersion()
			}
			return err
		})
	}
	return out
}

// removeManager deletes the manager's namespace, as the page on installation says,
// and looks at the cluster without one.
func (u *stay) removeManager() {
	u.t.Helper()
	u.remember()
	u.kubectl("delete", "namespace", harness.ManagerNamespace, "--timeout=2m")
	if r := u.Valkey("status", "c"); r.Code != 0 || harness.Contains(r.Stdout, "Active") != nil {
		u.t.Errorf("status without a manager: %s", r)
	}
	u.WaitFormed("c", 3, 1)
}

func (u *stay) kubectl(args ...string) {
	u.t.Helper()
	if r := u.RunKubectl(u.t.Context(), "", args...); r.Code != 0 {
		u.t.Fatal(r)
	}
}

// removeAll deletes what the manifest holds, and looks for what is left.
func (u *stay) removeAll() {
	u.t.Helper()
	u.kubectl("delete", "--timeout=3m", "-f", filepath.Join(u.Root, "deploy", "install.yaml"))
	u.Eventually("nothing of the cluster is left", 3*time.Minute, func() error { return u.left(u.t.Context()) })
	if err := u.Client.Get(u.t.Context(), u.Key("mine"), &corev1.Secret{}); err != nil {
		u.t.Errorf("a Secret of the user: %v", err)
	}
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := u.Client.List(u.t.Context(), &crds); err != nil {
		u.t.Fatal(err)
	}
	for _, crd := range crds.Items {
		if crd.Spec.Group == v1alpha1.GroupVersion.Group {
			u.t.Errorf("CRD %s is left", crd.Name)
		}
	}
	var roles rbacv1.ClusterRoleList
	if err := u.Client.List(u.t.Context(), &roles); err != nil {
		u.t.Fatal(err)
	}
	for _, role := range roles.Items {
		if strings.HasPrefix(role.Name, "valkey-") {
			u.t.Errorf("ClusterRole %s is left", role.Name)
		}
	}
	if err := u.Client.Get(u.t.Context(), client.ObjectKey{Name: harness.ManagerNamespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		u.t.Errorf("the manager's namespace is left: %v", err)
	}
}

// left returns the first object that belongs to a cluster.
func (u *stay) left(ctx context.Context) error {
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &policyv1.PodDisruptionBudgetList{},
	} {
		if err := u.Client.List(ctx, list, client.InNamespace(u.Name), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}); err != nil {
			return err
		}
		if n := meta.LenList(list); n > 0 {
			return fmt.Errorf("%d of %T", n, list)
		}
	}
	return nil
}
