//go:build e2e

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/manifests"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

const (
	// ownedLabel is on everything that a test run makes.
	ownedLabel = "kubectl-valkey-e2e"
	// ConfigName is a ValkeyConfig for tests: little memory and no CPU limit, which
	// would slow servers down at random on a small machine.
	ConfigName = "e2e"
	// ImageName is the ValkeyImage of the starter menu.
	ImageName = "valkey-9"

	patience = 2 * time.Minute
)

func ours() map[string]string { return map[string]string{ownedLabel: "true"} }

// refuseForeign protects a Kubernetes that somebody named by mistake: the run would
// replace a manager that looks after clusters of others.
func (e *Env) refuseForeign(ctx context.Context) error {
	var clusters v1alpha1.ValkeyClusterList
	err := e.Client.List(ctx, &clusters)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // no CRDs, so there is nothing to protect
	}
	if err != nil {
		return fmt.Errorf("look for clusters of others: %w", err)
	}
	for i := range clusters.Items {
		var ns corev1.Namespace
		if err := e.Client.Get(ctx, client.ObjectKey{Name: clusters.Items[i].Namespace}, &ns); err != nil {
			return fmt.Errorf("look for clusters of others: %w", err)
		}
		if ns.Labels[ownedLabel] == "" {
			return fmt.Errorf("this Kubernetes holds ValkeyCluster %s in namespace %s, which no test made; use one without clusters", clusters.Items[i].Name, ns.Name)
		}
	}
	return nil
}

// install applies what users apply, with the image that was built, and waits until
// the manager leads.
func (e *Env) install(ctx context.Context) error {
	if err := e.applyManager(ctx, e.managerImage); err != nil {
		return err
	}
	if err := e.publishMenu(ctx); err != nil {
		return fmt.Errorf("publish the menu: %w", err)
	}
	if _, err := e.WaitForManager(ctx, ""); err != nil {
		return fmt.Errorf("install the manager: %w", err)
	}
	return nil
}

// applyManager applies deploy/install.yaml with an image of the manager, or with the
// one that it names if that is empty. Each time is a new build, so that Kubernetes
// replaces the manager's pod.
func (e *Env) applyManager(ctx context.Context, image string) error {
	manifest, err := os.ReadFile(filepath.Join(e.Root, "deploy", "install.yaml"))
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	if image != "" {
		build := time.Now().UTC().Format("20060102T150405.000000000")
		if manifest, err = manifests.Manager(manifest, image, build); err != nil {
			return err
		}
	}
	if manifest, err = talkative(manifest); err != nil {
		return err
	}
	if err := e.apply(ctx, manifest); err != nil {
		return fmt.Errorf("install the manager: %w", err)
	}
	return nil
}

// talkative lets the manager log at level debug, by its ConfigMap: each look at a
// cluster is then a line, which explains failures and can be counted.
func talkative(manifest []byte) ([]byte, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	var out bytes.Buffer
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		} else if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		if obj.GetKind() == "ConfigMap" {
			if err := unstructured.SetNestedField(obj.Object, "debug", "data", "LOG_LEVEL"); err != nil {
				return nil, fmt.Errorf("set the manager's log level: %w", err)
			}
		}
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, fmt.Errorf("write the manifest: %w", err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
}

// apply is kubectl apply; a warning, such as one of Pod Security, is an error.
func (e *Env) apply(ctx context.Context, manifest []byte) error {
	r := e.RunKubectl(ctx, string(manifest), "apply", "-f", "-")
	if r.Code != 0 || strings.Contains(r.Stderr, "Warning") {
		return fmt.Errorf("kubectl apply: exit code %d: %s", r.Code, r.Stderr)
	}
	return nil
}

func (e *Env) publishMenu(ctx context.Context) error {
	starter, err := os.ReadFile(filepath.Join(e.Root, "deploy", "starter.yaml"))
	if err != nil {
		return err
	}
	if e.ValkeyImage.Ref != "" {
		if starter, err = manifests.Menu(starter, e.ValkeyImage.Ref, e.ValkeyImage.Version); err != nil {
			return err
		}
	}
	if err := e.apply(ctx, starter); err != nil {
		return err
	}
	if e.ValkeyImage.Ref == "" {
		var image v1alpha1.ValkeyImage
		if err := e.Client.Get(ctx, client.ObjectKey{Name: ImageName}, &image); err != nil {
			return err
		}
		e.ValkeyImage = clusterctl.Image{Ref: image.Spec.Repository + ":" + image.Spec.Tag, Version: image.Spec.Version}
	}
	memory := resource.MustParse("128Mi")
	config := &v1alpha1.ValkeyConfig{
		ObjectMeta: metav1.ObjectMeta{Name: ConfigName, Labels: ours()},
		Spec: v1alpha1.ValkeyConfigSpec{
			ImageRef: ImageName, Resources: &v1alpha1.Resources{Memory: &memory},
			Valkey: map[string]v1alpha1.SettingValue{"maxmemory": "64mb"},
		},
	}
	return e.Client.Create(ctx, config)
}

// clean removes everything that a test run makes, and waits until it is gone.
func (e *Env) clean(ctx context.Context) error {
	if err := e.deleteNamespaces(ctx); err != nil {
		return err
	}
	for _, list := range []client.ObjectList{&v1alpha1.ValkeyConfigList{}, &v1alpha1.ValkeyImageList{}, &v1alpha1.ValkeyRoleList{}} {
		err := e.Client.List(ctx, list, client.MatchingLabels(ours()))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		for _, item := range items {
			obj, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", item)
			}
			if err := client.IgnoreNotFound(e.Client.Delete(ctx, obj)); err != nil {
				return err
			}
		}
	}
	for _, file := range []string{"starter.yaml", "install.yaml"} {
		r := e.RunKubectl(ctx, "", "delete", "--ignore-not-found", "--timeout=3m", "-f", filepath.Join(e.Root, "deploy", file))
		// Without the CRDs there is no menu to delete.
		if r.Code != 0 && !strings.Contains(r.Stderr, "no matches for kind") {
			return fmt.Errorf("kubectl delete -f deploy/%s: %s", file, r.Stderr)
		}
	}
	return nil
}

func (e *Env) deleteNamespaces(ctx context.Context) error {
	var list corev1.NamespaceList
	if err := e.Client.List(ctx, &list, client.MatchingLabels(ours())); err != nil {
		return fmt.Errorf("list the tests' namespaces: %w", err)
	}
	for i := range list.Items {
		if err := client.IgnoreNotFound(e.Client.Delete(ctx, &list.Items[i])); err != nil {
			return fmt.Errorf("delete namespace %s: %w", list.Items[i].Name, err)
		}
	}
	return e.waitNamespacesGone(ctx)
}

func (e *Env) waitNamespacesGone(ctx context.Context) error {
	return until(ctx, 3*time.Minute, func() error {
		var list corev1.NamespaceList
		if err := e.Client.List(ctx, &list, client.MatchingLabels(ours())); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d namespaces of tests are still there, the first is %s", len(list.Items), list.Items[0].Name)
		}
		return nil
	})
}

// stop takes everything away again and reports what the whole run showed of the
// manager.
func (e *Env) stop(ctx context.Context, passed bool) error {
	var errs []error
	errs = append(errs, e.managerRestarts(ctx))
	if e.record != nil {
		errs = append(errs, e.endRecord(passed))
	}
	if !passed {
		errs = append(errs, e.saveState(ctx))
	}
	if kept() && !passed {
		fmt.Println("KEEP is set: what the failed tests made stays; the next run removes it")
	} else if err := e.clean(ctx); err != nil {
		errs = append(errs, fmt.Errorf("clean up: %w", err))
	}
	e.managerLogs.stop()
	errs = append(errs, os.RemoveAll(e.home))
	if len(e.unchecked) > 0 {
		var b bytes.Buffer
		for _, what := range e.unchecked {
			fmt.Fprintf(&b, "NOT CHECKED, it needs the local Kubernetes: %s\n", what)
		}
		fmt.Print(b.String())
	}
	return errors.Join(errs...)
}
