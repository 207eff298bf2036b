//go:build e2e

package suite

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// What somebody changes or deletes of the objects that all nodes share is put
// right, and nothing restarts for it.
func TestWhatTheManagerMadeStaysAsItIs(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 2)
	s.Create(s.Cluster("c", 1, 1))
	s.WaitActive("c")
	births := s.Births(&v1alpha1.ValkeyNodeList{})
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.Name, Name: name} }
	service := &corev1.Service{ObjectMeta: at("c")}
	acl := &corev1.ConfigMap{ObjectMeta: at(objects.ACLConfigMapName("c"))}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: at(objects.PDBName("c", 0))}
	spoils := map[client.Object]func(){
		service: func() { service.Spec.PublishNotReadyAddresses = false },
		acl:     func() { acl.Data = map[string]string{"users.acl": "user default on nopass ~* &* +@all"} },
		budget: func() {
			two := intstr.FromInt32(2)
			budget.Spec.MinAvailable = &two
		},
	}
	for obj, spoil := range spoils {
		name := fmt.Sprintf("%s %s", objects.KindOf(obj), obj.GetName())
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatalf("read %s: %v", name, err)
		}
		good, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%T is no object", obj)
		}
		spoil()
		if err := s.Client.Patch(t.Context(), obj, client.MergeFrom(good)); err != nil {
			t.Fatalf("change %s: %v", name, err)
		}
		restored := func() error {
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
			if !equality.Semantic.DeepEqual(wish(obj), wish(good)) {
				return fmt.Errorf("it is %v, want %v", wish(obj), wish(good))
			}
			return nil
		}
		s.Eventually(name+" is put right after a change", 30*time.Second, restored)
		if _, fixed := obj.(*corev1.Service); fixed {
			continue // another one would have other addresses
		}
		s.Delete(obj)
		s.Eventually(name+" is put right after its deletion", 30*time.Second, restored)
	}
	s.WaitActive("c")
	s.WaitFormed("c", 1, 1)
	if err := births.Want(0); err != nil {
		t.Errorf("nodes made meanwhile: %v", err)
	}
}

// wish is the part of an object that the manager sets.
func wish(obj client.Object) any {
	switch o := obj.(type) {
	case *corev1.Service:
		return o.Spec
	case *corev1.ConfigMap:
		return o.Data
	case *policyv1.PodDisruptionBudget:
		return o.Spec
	}
	return nil
}
