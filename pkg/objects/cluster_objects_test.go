package objects_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func TestEveryObjectIsLabeledAndOwnedByItsClusterOrNode(t *testing.T) {
	c := cluster()
	n := node(c, nodeInput())
	owners := map[string]metav1.Object{"ValkeyCluster": c, "ValkeyNode": n}
	for _, tc := range []struct {
		object metav1.Object
		owner  string
	}{
		{objects.HeadlessService(c), "ValkeyCluster"},
		{objects.AuthSecret(c, objects.Passwords{}), "ValkeyCluster"},
		{objects.ACLConfigMap(c, ""), "ValkeyCluster"},
		{objects.PodDisruptionBudget(c, 0, 1), "ValkeyCluster"},
		{objects.Node(c, nodeInput()), "ValkeyCluster"},
		{objects.NodeConfigMap(n, ""), "ValkeyNode"},
		{objects.Pod(n, objects.PodInput{}), "ValkeyNode"},
	} {
		name := tc.object.GetName()
		if tc.object.GetNamespace() != c.Namespace {
			t.Errorf("%s is in namespace %q", name, tc.object.GetNamespace())
		}
		labels := tc.object.GetLabels()
		if labels["app.kubernetes.io/managed-by"] != "valkey-operator" || labels["app.kubernetes.io/instance"] != c.Name {
			t.Errorf("%s has labels %v", name, labels)
		}
		ref := metav1.GetControllerOf(tc.object)
		if ref == nil {
			t.Errorf("%s has no controller", name)
			continue
		}
		owner := owners[tc.owner]
		if ref.APIVersion != "valkey.gomomento.com/v1alpha1" || ref.Kind != tc.owner ||
			ref.Name != owner.GetName() || ref.UID != owner.GetUID() || !*ref.BlockOwnerDeletion {
			t.Errorf("%s is owned by %+v, want the %s", name, ref, tc.owner)
		}
		if len(tc.object.GetFinalizers()) > 0 {
			t.Errorf("%s has finalizers: ownership does the deletion", name)
		}
	}
}

func TestHeadlessServicePublishesPodsBeforeTheyAreReady(t *testing.T) {
	service := objects.HeadlessService(cluster())
	golden(t, "headless-service", service)
	if !service.Spec.PublishNotReadyAddresses {
		t.Error("O-06: names must resolve before pods are ready")
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Error("the Service is not headless")
	}
	pod := objects.Pod(node(cluster(), nodeInput()), objects.PodInput{})
	if pod.Spec.Subdomain != service.Name || pod.Spec.Hostname != pod.Name {
		t.Errorf("pod %s is host %q of %q: its DNS name would not exist", pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain)
	}
	for key, value := range service.Spec.Selector {
		if pod.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, the pod has %q", key, value, pod.Labels[key])
		}
	}
}

func TestBudgetKeepsAllCopiesButOne(t *testing.T) {
	golden(t, "budget", objects.PodDisruptionBudget(cluster(), 1, 2))
	pod := objects.Pod(node(cluster(), nodeInput()), objects.PodInput{})
	for replicas := int32(1); replicas <= 5; replicas++ {
		budget := objects.PodDisruptionBudget(cluster(), 1, replicas)
		if got := budget.Spec.MinAvailable; got.Type != intstr.Int || got.IntVal != replicas {
			t.Errorf("O-04: %d replicas need minAvailable %d, got %v", replicas, replicas, got)
		}
		if budget.Spec.MaxUnavailable != nil {
			t.Error("O-04: maxUnavailable needs an owner with a scale subresource")
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		if !selector.Matches(labelSet(pod.Labels)) {
			t.Errorf("the budget of shard 1 doesn't cover its pod: %v", selector)
		}
		if other := objects.Pod(node(cluster(), otherShard()), objects.PodInput{}); selector.Matches(labelSet(other.Labels)) {
			t.Errorf("the budget of shard 1 covers a pod of another: %v", selector)
		}
	}
	if objects.PodDisruptionBudget(cluster(), 0, 0) != nil {
		t.Error("a budget for a shard without replicas")
	}
}

func TestConfigMapsHoldTheRenderedFiles(t *testing.T) {
	golden(t, "acl-configmap", objects.ACLConfigMap(cluster(), "user default on nopass ~* &* +@all\n"))
	golden(t, "node-configmap", objects.NodeConfigMap(node(cluster(), nodeInput()), "port 6379\n"))
}

func TestNodeTakesPlacementTLSAndExternalAccessFromTheCluster(t *testing.T) {
	plain := objects.Node(cluster(), nodeInput())
	golden(t, "node", plain)

	c := cluster()
	c.Spec.TLS = &v1alpha1.TLS{SecretRef: "user-maintained"}
	c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true, Domain: "valkey.example.com"}
	c.Spec.Placement = &v1alpha1.Placement{Zones: []string{"a", "b"}, ZoneSpread: v1alpha1.ZoneSpreadRequired}
	in := nodeInput()
	in.PullSecrets = []string{"registry"}
	in.PreferredZone = "b"
	in.JoinType = v1alpha1.JoinReplica
	all := objects.Node(c, in)
	golden(t, "node-everything", all)

	c.Spec.Placement.Zones[0] = "changed"
	if all.Spec.Placement.Zones[0] != "a" {
		t.Error("the node shares its placement with the cluster")
	}
}

func TestANodeThatHadItsPodIsKnownByItsStatus(t *testing.T) {
	condition := func(status metav1.ConditionStatus) v1alpha1.ValkeyNodeStatus {
		return v1alpha1.ValkeyNodeStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionPodCreated, Status: status}}}
	}
	for name, tc := range map[string]struct {
		status v1alpha1.ValkeyNodeStatus
		want   bool
	}{
		"new":            {v1alpha1.ValkeyNodeStatus{}, false},
		"pod rejected":   {condition(metav1.ConditionFalse), false},
		"pod created":    {condition(metav1.ConditionTrue), true},
		"had an address": {v1alpha1.ValkeyNodeStatus{PodIP: "10.0.0.1"}, true},
		"had an ID":      {v1alpha1.ValkeyNodeStatus{NodeID: "aaaa"}, true},
	} {
		if got := objects.PodWasCreated(&v1alpha1.ValkeyNode{Status: tc.status}); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
