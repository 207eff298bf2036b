package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// A pod outlives its node by the time that it takes to end, and keeps its name.
func TestPodsOfFormerNodesAreNobodysAndTheirNamesAreTaken(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	meta := func(name, uid, owner string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(uid),
			Labels: map[string]string{v1alpha1.LabelInstance: "c", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "any", Name: "any", UID: types.UID(owner), Controller: ptr.To(true),
			}},
		}
	}
	cluster := &v1alpha1.ValkeyCluster{ObjectMeta: meta("c", "cluster", "")}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.ValkeyNode{ObjectMeta: meta("c-1", "node-1", "cluster")},
		&v1alpha1.ValkeyNode{ObjectMeta: meta("c-2", "node-2", "cluster")},
		&v1alpha1.ValkeyNode{ObjectMeta: meta("c-3", "node-3", "another cluster of this name")},
		&corev1.Pod{ObjectMeta: meta("c-1", "pod-1", "node-1")},
		&corev1.Pod{ObjectMeta: meta("c-2", "pod-2", "a former node c-2")},
		&corev1.Pod{ObjectMeta: meta("c-4", "pod-4", "node-4")},
	).Build()
	nodes, pods, former, err := listNodes(t.Context(), reader, cluster)
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 2 || nodes[0].Name != "c-1" || nodes[1].Name != "c-2" {
		t.Errorf("the nodes are %v", nodes)
	}
	if len(pods) != 1 || pods["c-1"] == nil || pods["c-1"].UID != "pod-1" {
		t.Errorf("the pods are %v", pods)
	}
	if len(former) != 2 || former["c-2"] == nil || former["c-4"] == nil {
		t.Errorf("pods of former nodes are %v", former)
	}
}
