//go:build e2e

package suite

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// everything lists all objects of a namespace of every kind that can be listed.
func everything(t *testing.T, s *harness.Space) []unstructured.Unstructured {
	t.Helper()
	kinds, err := s.Clientset.Discovery().ServerPreferredNamespacedResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // other tests add kinds and remove them
		t.Fatalf("list the kinds: %v", err)
	}
	dyn, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatalf("create a client: %v", err)
	}
	var out []unstructured.Unstructured
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			t.Fatalf("list the kinds: %v", err)
		}
		for _, kind := range group.APIResources {
			// Endpoints are the old form of EndpointSlices.
			if !slices.Contains(kind.Verbs, "list") || kind.Name == "endpoints" {
				continue
			}
			list, err := dyn.Resource(version.WithResource(kind.Name)).Namespace(s.Name).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue // the kind has gone meanwhile, and all of it
			}
			if err != nil {
				t.Fatalf("list %s: %v", kind.Name, err)
			}
			out = append(out, list.Items...)
		}
	}
	return out
}

// ours are the objects that the manager made: all that carry its label.
func ours(all []unstructured.Unstructured) []unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(all), func(o unstructured.Unstructured) bool {
		// Kubernetes copies the labels of a Service to its EndpointSlices.
		return o.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy || o.GetKind() == "EndpointSlice"
	})
}

// checkObjects wants the objects that a shape has, no others, each with labels and
// a controlling owner, none with a finalizer.
func checkObjects(t *testing.T, s *harness.Space, want shape) {
	t.Helper()
	count := map[string]int{}
	for _, o := range ours(everything(t, s)) {
		count[o.GetKind()]++
		name := o.GetKind() + " " + o.GetName()
		if o.GetLabels()[v1alpha1.LabelName] != v1alpha1.ApplicationName || o.GetLabels()[v1alpha1.LabelInstance] != "c" {
			t.Errorf("%s has labels %v", name, o.GetLabels())
		}
		if len(o.GetFinalizers()) > 0 {
			t.Errorf("%s has finalizers %v", name, o.GetFinalizers())
		}
		owner := metav1.GetControllerOf(&o)
		if owner == nil || owner.APIVersion != v1alpha1.GroupVersion.String() || owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
			t.Errorf("%s has owners %+v", name, o.GetOwnerReferences())
			continue
		}
		byNode := o.GetKind() == "Pod" || strings.HasSuffix(name, "-config")
		if kind := map[bool]string{true: "ValkeyNode", false: "ValkeyCluster"}[byNode]; owner.Kind != kind {
			t.Errorf("%s belongs to a %s, want a %s", name, owner.Kind, kind)
		}
	}
	budgets := 0
	if want.replicas > 0 {
		budgets = int(want.shards)
	}
	expected := map[string]int{"ValkeyNode": want.nodes(), "Pod": want.nodes(), "ConfigMap": want.nodes() + 1, "Service": 1, "Secret": 1, "PodDisruptionBudget": budgets}
	for kind, n := range expected {
		if count[kind] != n {
			t.Errorf("there are %d objects of kind %s, want %d", count[kind], kind, n)
		}
		delete(count, kind)
	}
	if len(count) > 0 {
		t.Errorf("objects of other kinds were made: %v", count)
	}
	checkBudgets(t, s, want)
}

// O-04: a budget lets one copy of each shard go.
func checkBudgets(t *testing.T, s *harness.Space, want shape) {
	t.Helper()
	s.Eventually("each disruption budget allows one disruption", harness.ActiveWithin, func() error {
		var budgets policyv1.PodDisruptionBudgetList
		if err := s.Client.List(t.Context(), &budgets, client.InNamespace(s.Name)); err != nil {
			return err
		}
		for _, b := range budgets.Items {
			switch {
			case b.Spec.MinAvailable == nil || b.Spec.MinAvailable.IntVal != want.replicas:
				return fmt.Errorf("%s has minAvailable %v, want %d", b.Name, b.Spec.MinAvailable, want.replicas)
			case b.Status.DisruptionsAllowed != 1 || b.Status.ExpectedPods != want.replicas+1:
				return fmt.Errorf("%s allows %d disruptions of %d pods", b.Name, b.Status.DisruptionsAllowed, b.Status.ExpectedPods)
			}
		}
		return nil
	})
}

// checkPasswords looks for the two system passwords everywhere but in the one
// Secret that is theirs: in every object, in the manager's and the servers' logs,
// in the arguments and the environment of the servers' processes.
func checkPasswords(t *testing.T, s *harness.Space) {
	t.Helper()
	var auth corev1.Secret
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Name, Name: objects.AuthSecretName("c")}, &auth); err != nil {
		t.Fatalf("read the system passwords: %v", err)
	}
	secrets := map[string]string{}
	for _, key := range []string{objects.AuthKeyOperator, objects.AuthKeyReplication} {
		password := auth.Data[key]
		if len(password) != 128 {
			t.Errorf("%s has %d characters, want 128", key, len(password))
		}
		secrets[key], secrets[key+" in base64"] = string(password), base64.StdEncoding.EncodeToString(password)
	}
	look := func(where, text string) {
		for key, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds the %s", where, key)
			}
		}
	}
	for _, o := range everything(t, s) {
		if o.GetKind() == "Secret" && o.GetName() == auth.Name {
			continue
		}
		text, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatalf("write %s: %v", o.GetName(), err)
		}
		look(o.GetKind()+" "+o.GetName(), string(text))
	}
	for _, pod := range s.Pods("c") {
		process, err := s.Exec(t.Context(), s.Name, pod.Name, "", "cat", "/proc/1/cmdline", "/proc/1/environ")
		if err != nil || !strings.Contains(process, "valkey-server") {
			t.Fatalf("read the process of pod %s: %v: %q", pod.Name, err, process)
		}
		look("the process of pod "+pod.Name, process)
		look("the log of pod "+pod.Name, s.Kubectl("logs", pod.Name).Stdout)
	}
	look("the manager's log", s.RunKubectl(t.Context(), "", "logs", "-n", harness.ManagerNamespace, "-l", "app="+harness.ManagerName, "--tail=-1").Stdout)
}
