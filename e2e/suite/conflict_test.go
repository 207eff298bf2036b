//go:build e2e

package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// An object that has a name of ours and isn't ours is never touched: it is named
// in a condition and one event, and the cluster comes up once it is gone.
func TestObjectsOfOthersAreNeverTouched(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 3)
	c := s.Cluster("c", 1, 1)
	// Paused, so that the names of its nodes, which follow from its UID, can be taken
	// before it needs them.
	c.Spec.Paused = true
	s.Create(c)
	node := plan.NodeName(plan.State{Cluster: c.Name, UID: string(c.UID)}, plan.Position{}, "", 0)
	one := intstr.FromInt32(1)
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.Name, Name: name} }
	// In the order in which the manager comes upon them.
	foreign := []client.Object{
		&corev1.Service{ObjectMeta: at("c"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.Secret{ObjectMeta: at(objects.AuthSecretName("c"))},
		&corev1.ConfigMap{ObjectMeta: at(objects.ACLConfigMapName("c"))},
		&policyv1.PodDisruptionBudget{ObjectMeta: at(objects.PDBName("c", 0)), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one}},
		&corev1.ConfigMap{ObjectMeta: at(objects.NodeConfigMapName(node))},
		s.ClientPod(node, ""),
	}
	for _, obj := range foreign {
		s.Create(obj)
	}
	waitRunning(t, s, node)
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.Paused = false })
	for _, obj := range foreign {
		name := fmt.Sprintf("%s %s", objects.KindOf(obj), obj.GetName())
		s.Eventually(name+" is reported", time.Minute, func() error {
			got := harness.Condition(s.Get("c"), v1alpha1.ConditionProgressing)
			// What belongs to a node is the node's conflict: the cluster waits for it.
			reason := v1alpha1.ReasonNameConflict
			if strings.Contains(name, node) {
				reason = v1alpha1.ReasonWaiting
			}
			if got.Reason != reason {
				return fmt.Errorf("Progressing is %s: %s: %s", got.Status, got.Reason, got.Message)
			}
			return harness.Contains(got.Message, name, "does not belong to this")
		})
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatalf("read %s: %v", name, err)
		}
		// Kubernetes itself writes the status of some and labels pods.
		labeled := obj.GetLabels()[v1alpha1.LabelManagedBy] != "" || obj.GetLabels()[v1alpha1.LabelInstance] != ""
		if labeled || len(obj.GetOwnerReferences()) > 0 || obj.GetDeletionTimestamp() != nil || obj.GetGeneration() > 1 {
			t.Errorf("%s was changed: %v", name, obj)
		}
		s.Delete(obj)
	}
	s.WaitActive("c")
	s.WaitFormed("c", 1, 1)
	var said map[string]int
	// A node says once that it can't have its pod, though two objects were in the way.
	s.Eventually("each conflict was told", time.Minute, func() error {
		said = map[string]int{}
		for _, e := range s.Events() {
			if e.Reason == v1alpha1.ReasonNameConflict && e.Type == corev1.EventTypeWarning {
				said[e.Message] += max(1, int(e.Count))
			}
		}
		if want := len(foreign) - 1; len(said) != want {
			return fmt.Errorf("%d different events, want %d: %v", len(said), want, said)
		}
		return nil
	})
	for message, n := range said {
		if n != 1 {
			t.Errorf("said %d times: %s", n, message)
		}
	}
}

func waitRunning(t *testing.T, s *harness.Space, name string) {
	t.Helper()
	s.Eventually("pod "+name+" runs", time.Minute, func() error {
		var pod corev1.Pod
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Name, Name: name}, &pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("its phase is %s", pod.Status.Phase)
		}
		return nil
	})
}
