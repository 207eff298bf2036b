package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// An API server of one family makes no Service of the other, so the families are
// put into the Service here.
func TestServersBindTheAddressFamiliesOfTheHeadlessService(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha1.ValkeyCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	node := objects.Node(cluster, objects.NodeInput{Name: "c-0a1b2"})
	for _, tc := range []struct {
		families []corev1.IPFamily
		want     string
	}{
		{[]corev1.IPFamily{corev1.IPv4Protocol}, "bind 0.0.0.0\n"},
		{[]corev1.IPFamily{corev1.IPv6Protocol}, "bind 0.0.0.0 ::\n"},
		{[]corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, "bind 0.0.0.0 ::\n"},
	} {
		service := objects.HeadlessService(cluster)
		service.Spec.IPFamilies = tc.families
		client := fake.NewClientBuilder().WithScheme(scheme).WithObjects(service).Build()
		r := &Reconciler{Client: client, Live: client, Options: Options{ClusterDomain: "kube.prod"}}
		conf, err := r.render(t.Context(), cluster, node)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(conf, tc.want) {
			t.Errorf("V-01: %v: no %q in\n%s", tc.families, tc.want, conf)
		}
	}
}

func TestARefusedPodIsTriedAgainMoreAndMoreSlowly(t *testing.T) {
	start := time.Unix(1000, 0)
	node := &v1alpha1.ValkeyNode{Status: v1alpha1.ValkeyNodeStatus{Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionPodCreated, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(start),
	}}}}
	for since, want := range map[time.Duration]time.Duration{
		0:                minRetry,
		3 * time.Second:  minRetry,
		10 * time.Second: 5 * time.Second,
		time.Hour:        maxRetry,
		-time.Minute:     minRetry, // clocks differ
	} {
		r := &Reconciler{now: func() time.Time { return start.Add(since) }}
		if got := r.retryIn(node); got != want {
			t.Errorf("after %s: %s, want %s", since, got, want)
		}
	}
}
