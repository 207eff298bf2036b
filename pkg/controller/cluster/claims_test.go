package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

//
func TestAnAddressIsClaimedByMembersOfOtherClustersAlone(t *testing.T) {
	node := func(namespace, cluster, name, ip string, lifecycle v1alpha1.Lifecycle) v1alpha1.ValkeyNode {
		return v1alpha1.ValkeyNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       v1alpha1.ValkeyNodeSpec{ClusterName: cluster, Lifecycle: lifecycle},
			Status:     v1alpha1.ValkeyNodeStatus{PodIP: ip},
		}
	}
	all := []v1alpha1.ValkeyNode{
		node("n", "c", "c-00000", "10.0.0.1", v1alpha1.LifecycleActive),  // its own predecessor
		node("n", "c", "c-22222", "10.0.0.2", v1alpha1.LifecycleJoining), // itself
		node("m", "c", "c-33333", "10.0.0.2", v1alpha1.LifecycleActive),
		node("m", "d", "d-44444", "10.0.0.3", v1alpha1.LifecycleJoining), // known to nobody
		node("m", "d", "d-55555", "10.0.0.9", v1alpha1.LifecycleActive),
	}
	joining := map[string]string{"10.0.0.1": "c-11111", "10.0.0.2": "c-22222", "10.0.0.3": "c-66666"}
	cluster := &v1alpha1.ValkeyCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	want := map[string]string{"c-22222": "node c-33333 of cluster c in namespace m"}
	if diff := cmp.Diff(want, claimed(joining, all, cluster)); diff != "" {
		t.Error(diff)
	}
}
