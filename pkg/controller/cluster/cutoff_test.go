package cluster

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// silenced is a complete cluster of which no server answers, although its pods run.
func silenced() *observation {
	o := healthy()
	for name, pod := range o.pods {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		o.reply(name, topology.Reply{Err: errors.New("dial tcp 10.0.0.1:6379: i/o timeout")})
	}
	o.awaited = []string{"node c-00000 may still hold the data of shard 0"}
	return o
}

func TestManagerThatReachesNobodyDoesNotAdviseToGiveUpData(t *testing.T) {
	active := &v1alpha1.ValkeyClusterStatus{State: v1alpha1.StateActive}
	unready := func(o *observation) {
		for _, pod := range o.pods {
			pod.Status.Conditions[len(pod.Status.Conditions)-1].Status = corev1.ConditionFalse
		}
	}
	for name, tt := range map[string]struct {
		change func(*observation)
		reason string
	}{
		"every pod runs":              {func(*observation) {}, v1alpha1.ReasonNodeUnreachable},
		"one died, the others run":    {func(o *observation) { delete(o.pods, "c-00000") }, v1alpha1.ReasonNodeUnreachable},
		"their Kubernetes nodes fail": {unready, v1alpha1.ReasonCopiesAwaited},
		"one of them fails": {func(o *observation) {
			pod := o.pods["c-00000"]
			pod.Status.Conditions[len(pod.Status.Conditions)-1].Status = corev1.ConditionFalse
		}, v1alpha1.ReasonCopiesAwaited},
		"all died": {func(o *observation) { o.pods = map[string]*corev1.Pod{} }, v1alpha1.ReasonCopiesAwaited},
	} {
		o := silenced()
		tt.change(o)
		got := degradedCondition(active, o)
		if got.Status != metav1.ConditionTrue || got.Reason != tt.reason {
			t.Errorf("%s: %s: %s: %s, want %s", name, got.Status, got.Reason, got.Message, tt.reason)
		}
		blames := strings.Contains(got.Message, "6379") && strings.Contains(got.Message, "kubectl valkey networkpolicy c -n n")
		if advises := strings.Contains(got.Message, "acknowledge"); blames == advises {
			t.Errorf("%s: %s", name, got.Message)
		}
	}
	if got := degradedCondition(active, healthy()); got.Status != metav1.ConditionFalse {
		t.Errorf("a healthy cluster: %+v", got)
	}
}
