package cluster

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

func TestALossIsReportedBeforeItsTracesGo(t *testing.T) {
	o, r := healthy(), &Reconciler{moments: newMoments()}
	actions := []plan.Action{{Kind: plan.Forget, Reason: "x"}, {Kind: plan.ReplaceLost, Reason: "no copy of shard 1 is left"}}
	lost := r.unreportedLoss(o, actions)
	if len(lost) != 1 || lost[0] != "no copy of shard 1 is left" {
		t.Fatalf("unreported %q", lost)
	}
	o.cluster.Status = statusOf(o, outcome{lost: lost})
	if again := r.unreportedLoss(o, actions); len(again) > 0 {
		t.Errorf("reported once more: %q", again)
	}
	actions[1].Reason = "no copy of shard 2 is left"
	o.cluster.Status = statusOf(o, outcome{lost: r.unreportedLoss(o, actions)})
	c := meta.FindStatusCondition(o.cluster.Status.Conditions, v1alpha1.ConditionDataLoss)
	if c == nil || c.Message != "no copy of shard 1 is left; no copy of shard 2 is left" {
		t.Errorf("condition %+v", c)
	}
}

// A message that the API server refuses would stop everything.
func TestHoweverMuchIsLostTheConditionHoldsIt(t *testing.T) {
	o, r := healthy(), &Reconciler{moments: newMoments()}
	var actions []plan.Action
	for shard := range 1000 {
		reason := fmt.Sprintf("no copy of shard %d is left: node c-00000 takes slots %s without data", shard, strings.Repeat("1 3 5 ", 2000))
		actions = append(actions, plan.Action{Kind: plan.ReplaceLost, Reason: reason})
	}
	for _, part := range [][]plan.Action{actions[:5], actions[:600], actions} {
		lost := r.unreportedLoss(o, part)
		o.cluster.Status = statusOf(o, outcome{lost: lost})
		r.lossReported(o, lost)
		if again := r.unreportedLoss(o, part); len(again) > 0 {
			t.Fatalf("%d of %d losses are reported once more", len(again), len(part))
		}
	}
	c := meta.FindStatusCondition(o.cluster.Status.Conditions, v1alpha1.ConditionDataLoss)
	if c == nil || len(c.Message) > 32768 || !strings.HasSuffix(c.Message, "; and 992 more") || strings.Count(c.Message, "no copy of shard") != 8 {
		t.Errorf("condition %.200s… of %d bytes", c.Message, len(c.Message))
	}
}
