package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// ask adds a request to an observation.
func (o *observation) ask(verb, value string) *observation {
	o.cluster.Annotations = map[string]string{v1alpha1.AnnotationRequestPrefix + verb: value}
	return o
}

func served(o *observation, d plan.Decision) outcome {
	out := outcome{decision: d, answers: map[string]v1alpha1.RequestStatus{}}
	(&Reconciler{}).serveRequests(o, &out)
	return out
}

func TestAFailoverThatWasAskedForIsCarriedOutAndAnswered(t *testing.T) {
	o := healthy().ask("failover", "id1 0")
	out := served(o, plan.Decision{Complete: true})
	if len(out.decision.Actions) != 1 || out.decision.Actions[0].Kind != plan.Failover || out.decision.Actions[0].Node != "c-11111" {
		t.Fatalf("decided %+v", out.decision)
	}
	o.cluster.Status = statusOf(o, out)
	if got := o.cluster.Status.Requests; len(got) != 1 || got[0].ID != "id1" || got[0].State != request.Running {
		t.Fatalf("answered %+v", got)
	}
	o.failovers = map[int32]time.Duration{0: time.Second}
	if again := served(o, plan.Decision{Complete: true}); len(again.decision.Actions) != 0 || again.answers["failover"].State != request.Running {
		t.Errorf("while it is under way: %+v", again)
	}
	o.failovers[0] = 3 * time.Second
	if late := served(o, plan.Decision{Complete: true}); late.answers["failover"].State != request.Failed {
		t.Errorf("after its time: %+v", late.answers)
	}
	o.cluster.Status.Requests[0].Message = handoverFrom + "c-99999"
	done := served(o, plan.Decision{Complete: true})
	if a := done.answers["failover"]; a.State != request.Done || !strings.Contains(a.Message, "c-00000 took over shard 0 from c-99999") {
		t.Errorf("after it: %+v", a)
	}
	o.cluster.Status = statusOf(o, done)
	if over := served(o, plan.Decision{Complete: true}); len(over.decision.Actions) != 0 || len(over.answers) != 0 {
		t.Errorf("an answered request is served again: %+v", over)
	}
}

func TestAFailoverThatCannotBeIsRefusedWithTheReason(t *testing.T) {
	for value, want := range map[string]string{
		"id":           "names no shard",
		"id x":         `"x" is no shard index`,
		"id 7":         "shard 7 has no primary",
		"id 0 c-00000": "is the primary of shard 0 already",
		"id 0 nobody":  "node nobody is not in shard 0",
	} {
		out := served(healthy().ask("failover", value), plan.Decision{Complete: true})
		if a := out.answers["failover"]; a.State != request.Failed || !strings.Contains(a.Message, want) {
			t.Errorf("%q is answered %+v, want %q", value, a, want)
		}
		if len(out.decision.Actions) != 0 {
			t.Errorf("%q makes the manager act", value)
		}
	}
	waiting := served(healthy().ask("failover", "id 0"), plan.Decision{Waiting: "gossip"})
	if a := waiting.answers["failover"]; a.State != request.Running || !strings.Contains(a.Message, "gossip") {
		t.Errorf("while the cluster is not well: %+v", a)
	}
}

func TestARestartIsDoneWhenNoNodeIsOlderThanIt(t *testing.T) {
	o := healthy().ask("restart", "id "+time.Unix(1500, 0).UTC().Format(time.RFC3339))
	for i := range o.nodes {
		o.nodes[i].CreationTimestamp = metav1.NewTime(time.Unix(1000, 0))
	}
	if a := served(o, plan.Decision{}).answers["restart"]; a.State != request.Running || !strings.Contains(a.Message, "replaced: 2") {
		t.Errorf("before: %+v", a)
	}
	for i := range o.nodes {
		o.nodes[i].CreationTimestamp = metav1.NewTime(time.Unix(1600, 0))
	}
	if a := served(o, plan.Decision{}).answers["restart"]; a.State != request.Done {
		t.Errorf("after: %+v", a)
	}
	if a := served(healthy().ask("restart", "id soon"), plan.Decision{}).answers["restart"]; a.State != request.Failed {
		t.Errorf("without a time: %+v", a)
	}
}

func TestADataLossStaysUntilItIsAcknowledged(t *testing.T) {
	o := healthy()
	o.cluster.Status = statusOf(o, outcome{lost: []string{"no copy of shard 1 is left"}})
	o.cluster.Status = statusOf(o, outcome{decision: plan.Decision{Complete: true}})
	c := meta.FindStatusCondition(o.cluster.Status.Conditions, v1alpha1.ConditionDataLoss)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "shard 1") {
		t.Fatalf("condition %+v", c)
	}
	o.ask("acknowledge", "id")
	o.awaited = []string{"node c-00000 may still hold the data"}
	s := statusOf(o, outcome{})
	if s.Requests[0].State != request.Running || meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDataLoss) == nil {
		t.Errorf("answered %+v while a copy is awaited", s.Requests)
	}
	o.awaited = nil
	o.cluster.Status = statusOf(o, outcome{})
	if got := o.cluster.Status.Requests[0].State; got != request.Done {
		t.Errorf("answered %s", got)
	}
	if meta.FindStatusCondition(o.cluster.Status.Conditions, v1alpha1.ConditionDataLoss) != nil {
		t.Error("the condition is still there")
	}
	if o.lossAccepted() {
		t.Error("an answered acknowledgement also accepts the next loss")
	}
}

func TestAnUnknownRequestIsRefused(t *testing.T) {
	o := healthy().ask("dance", "id")
	s := statusOf(o, outcome{decision: plan.Decision{Complete: true}})
	if len(s.Requests) != 1 || s.Requests[0].State != request.Failed || !strings.Contains(s.Requests[0].Message, `"dance"`) {
		t.Errorf("answered %+v", s.Requests)
	}
}

func TestAShardWithoutPrimaryKeepsItsSlotsInTheStatus(t *testing.T) {
	o := healthy()
	o.cluster.Status.Shards = []v1alpha1.ShardStatus{{Index: 0, Slots: "100-16383", SlotCount: 16284}, {Index: 3, Slots: "0-99", SlotCount: 100}}
	if now := statusOf(o, outcome{}).Shards; len(now) != 1 || now[0].Slots != "0-16383" || now[0].Primary == "" {
		t.Errorf("slots that another shard serves are kept: %+v", now)
	}
	delete(o.pods, "c-00000")
	delete(o.replies, "c-00000")
	survivor := o.replies["c-11111"]
	survivor.Members = []topology.Member{{ID: replicaID, Role: topology.RoleReplica, PrimaryID: primaryID, ConfigEpoch: 1, LinkUp: true}}
	o.reply("c-11111", survivor)
	if now := statusOf(o, outcome{}).Shards; len(now) != 2 || now[0].Slots != "100-16383" || now[1].Slots != "0-99" || now[1].SlotCount != 100 {
		t.Errorf("lost slots are forgotten: %+v", now)
	}
}

func TestHowLongAPodIsTerminating(t *testing.T) {
	now := time.Unix(1000, 0)
	grace := int64(30)
	for _, c := range []struct{ deleted, seen, want time.Duration }{
		// The time of a deletion has no fraction: it may be up to a second younger.
		{2 * time.Second, 0, time.Second},
		{900 * time.Millisecond, 0, 0},
		{1800 * time.Millisecond, 900 * time.Millisecond, 900 * time.Millisecond},
		{1800 * time.Millisecond, 1700 * time.Millisecond, 1700 * time.Millisecond},
		{-time.Second, 0, 0}, // the clocks differ
	} {
		deletion := metav1.NewTime(now.Add(30*time.Second - c.deleted))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deletion, DeletionGracePeriodSeconds: &grace}}
		if got := terminatingFor(pod, c.seen, now); got != c.want {
			t.Errorf("deleted %s ago, seen %s ago: told to stop %s ago, want %s", c.deleted, c.seen, got, c.want)
		}
	}
	if got := terminatingFor(&corev1.Pod{}, 0, now); got != 0 {
		t.Errorf("a living pod was told to stop %s ago", got)
	}
}

func TestARestartThatIsYetToComeRollsNothing(t *testing.T) {
	for _, c := range []struct {
		ahead     time.Duration
		state     string
		replaced  bool
		messageOf string
	}{
		{-time.Second, request.Running, true, "replaced: 2"},
		{10 * time.Second, request.Running, false, "waiting for 1970-01-01T00:33:30Z"},
		{time.Hour, request.Failed, false, "1970-01-01T01:33:20Z is yet to come"},
	} {
		o := healthy()
		o.ask("restart", "id "+o.now.Add(c.ahead).UTC().Format(time.RFC3339))
		for i := range o.nodes {
			o.nodes[i].CreationTimestamp = metav1.NewTime(o.now.Add(-time.Minute))
			if got := o.olderThanRestart(&o.nodes[i]); got != c.replaced {
				t.Errorf("%s ahead: replaced %v, want %v", c.ahead, got, c.replaced)
			}
		}
		a := served(o, plan.Decision{}).answers["restart"]
		if a.State != c.state || !strings.Contains(a.Message, c.messageOf) {
			t.Errorf("%s ahead: answered %+v, want %s: …%s…", c.ahead, a, c.state, c.messageOf)
		}
	}
}

func TestARequestThatIsTakenBackLeavesNoOpenAnswer(t *testing.T) {
	o := healthy().ask("failover", "id2 0")
	o.cluster.Status.Requests = []v1alpha1.RequestStatus{
		{Verb: "failover", ID: "id1", State: request.Running, Message: "waiting: gossip"},
		{Verb: "restart", ID: "id1", State: request.Running, Message: "nodes still to be replaced: 2"},
		{Verb: "acknowledge", ID: "id1", State: request.Done},
	}
	got := statusOf(o, outcome{decision: plan.Decision{Complete: true}}).Requests
	if len(got) != 1 || got[0].Verb != "acknowledge" {
		t.Errorf("answers %+v, want only the one that is done", got)
	}
}

// While the tables list the owner that was lost its slots are not free, but they
// are lost all the same.
func TestAnAcknowledgementCountsUntilTheSlotsHaveALivingOwner(t *testing.T) {
	o := healthy().ask("acknowledge", "id")
	gone := o.replies["c-00000"]
	o.nodes = o.nodes[1:]
	delete(o.replies, "c-00000")
	survivor := o.replies["c-11111"]
	survivor.Members = []topology.Member{
		{ID: primaryID, Role: topology.RolePrimary, ConfigEpoch: 1, Failed: true, Slots: gone.Members[0].Slots},
		{ID: replicaID, Role: topology.RolePrimary, ConfigEpoch: 2, LinkUp: true},
	}
	o.reply("c-11111", survivor)
	if s := statusOf(o, outcome{}); s.Requests[0].State != request.Running {
		t.Errorf("answered %+v while nobody serves the slots", s.Requests[0])
	}
}
