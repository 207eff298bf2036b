package cluster

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// published are the events that a change from one condition to another leads to.
func published(was, now metav1.Condition) []string {
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Recorder: recorder}
	status := func(c metav1.Condition) v1alpha1.ValkeyClusterStatus {
		return v1alpha1.ValkeyClusterStatus{State: v1alpha1.StateCreating, Conditions: []metav1.Condition{c}}
	}
	r.announce(healthy(), status(was), status(now))
	var out []string
	for len(recorder.Events) > 0 {
		out = append(out, <-recorder.Events)
	}
	return out
}

func TestWhatOthersPublishIsNoNewsOfACluster(t *testing.T) {
	missing := func(message string) metav1.Condition {
		return metav1.Condition{
			Type: v1alpha1.ConditionConfigResolved, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonConfigNotFound, Message: message,
		}
	}
	was := missing(`ValkeyConfig "a" doesn't exist; existing: large, small`)
	tests := map[string]struct {
		now  string
		want int
	}{
		"another config exists":     {`ValkeyConfig "a" doesn't exist; existing: large, new, small`, 0},
		"another config is missing": {`ValkeyConfig "b" doesn't exist; existing: large, small`, 1},
		"one more thing is wrong":   {`ValkeyConfig "a" doesn't exist; existing: large, small; user "x" is bound twice`, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := published(was, missing(tt.now)); len(got) != tt.want {
				t.Errorf("%d events, want %d: %q", len(got), tt.want, got)
			}
		})
	}
}

func TestEventsAreNoLongerThanTheAPIServerTakes(t *testing.T) {
	failed := metav1.Condition{
		Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStepFailed, Message: strings.Repeat("ä", 2000),
	}
	got := published(metav1.Condition{}, failed)
	if len(got) != 1 {
		t.Fatalf("events: %q", got)
	}
	_, text, _ := strings.Cut(got[0], v1alpha1.ReasonStepFailed+" ")
	if len(text) > 1024 || len(text) < 1000 || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
		t.Errorf("the note has %d bytes: %.20q…", len(text), text)
	}
}
