//go:build linux

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestANodeIsReadyOnlyByAHeartbeatSinceItsStart(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 10, 500, time.UTC)
	for name, test := range map[string]struct {
		status corev1.ConditionStatus
		beat   time.Time
		want   bool
	}{
		"a beat from before it was killed":                                {corev1.ConditionTrue, start.Add(-5 * time.Second), false},
		"a beat in the second of its start, as the API has whole seconds": {corev1.ConditionTrue, start.Truncate(time.Second), true},
		"not ready": {corev1.ConditionFalse, start.Add(time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: test.status, LastHeartbeatTime: metav1.NewTime(test.beat)},
			}}}
			if got := readySince(n, start); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
