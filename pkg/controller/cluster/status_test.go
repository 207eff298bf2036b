package cluster

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

const (
	primaryID = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	replicaID = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// healthy is an observation of a complete cluster of one shard with a replica.
func healthy() *observation {
	o := &observation{
		cluster: &v1alpha1.ValkeyCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", Generation: 3},
			Spec:       v1alpha1.ValkeyClusterSpec{ConfigRef: "standard", Shards: 1, ReplicasPerShard: 1},
			Status: v1alpha1.ValkeyClusterStatus{
				State:    v1alpha1.StateActive,
				Topology: &v1alpha1.TargetTopology{Shards: 1, ReplicasPerShard: 1},
			},
		},
		now: time.Unix(2000, 0), pods: map[string]*corev1.Pod{}, replies: map[string]topology.Reply{},
		target: v1alpha1.TargetTopology{Shards: 1, ReplicasPerShard: 1},
	}
	for i, name := range []string{"c-00000", "c-11111"} {
		o.nodes = append(o.nodes, v1alpha1.ValkeyNode{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n"},
			Spec:       v1alpha1.ValkeyNodeSpec{ClusterName: "c", NodeIndex: int32(i), Lifecycle: v1alpha1.LifecycleActive},
			Status:     v1alpha1.ValkeyNodeStatus{PodIP: "10.0.0.1"},
		})
		o.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
			PodIP: "10.0.0.1", Phase: corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: v1alpha1.InSyncGate, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		}}
	}
	rows := []topology.Member{
		{ID: primaryID, Role: topology.RolePrimary, ConfigEpoch: 1, LinkUp: true, Slots: slots.All()},
		{ID: replicaID, Role: topology.RoleReplica, PrimaryID: primaryID, ConfigEpoch: 1, LinkUp: true},
	}
	o.reply("c-00000", topology.Reply{ID: primaryID, Members: rows, Info: topology.ClusterInfo{State: "ok"}})
	o.reply("c-11111", topology.Reply{
		ID: replicaID, Members: rows, Info: topology.ClusterInfo{State: "ok"},
		Replication: topology.Replication{Role: topology.RoleReplica, LinkUp: true, HasLinkDownSeconds: true},
	})
	return o
}

func (o *observation) reply(name string, r topology.Reply) {
	r.Node = name
	o.replies[name] = r
	var all []topology.Reply
	for _, each := range o.replies {
		all = append(all, each)
	}
	o.view = topology.Merge(all)
}

func statusOf(o *observation, out outcome) v1alpha1.ValkeyClusterStatus {
	r := &Reconciler{Reach: &reach.Reach{ClusterDomain: "cluster.local"}}
	return r.nextStatus(o, out)
}

func expect(t *testing.T, s v1alpha1.ValkeyClusterStatus, kind string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	c := meta.FindStatusCondition(s.Conditions, kind)
	if c == nil {
		t.Errorf("no condition %s", kind)
		return
	}
	if c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
		t.Errorf("%s is %s, %s: %q; want %s, %s: …%s…", kind, c.Status, c.Reason, c.Message, status, reason, message)
	}
	if c.ObservedGeneration != 3 {
		t.Errorf("%s is about generation %d", kind, c.ObservedGeneration)
	}
}

func TestAHealthyClusterIsReadyAndItsStatusSaysWhoServesWhat(t *testing.T) {
	s := statusOf(healthy(), outcome{decision: plan.Decision{Complete: true}})
	if s.State != v1alpha1.StateActive || s.Ready != "2/2" || s.ReadyShards != 1 || s.ShardCount != 1 || s.Message != "" {
		t.Errorf("status %+v", s)
	}
	if len(s.Shards) != 1 || s.Shards[0].Primary != "c-00000" || s.Shards[0].Slots != "0-16383" ||
		len(s.Shards[0].Replicas) != 1 || s.Shards[0].Replicas[0] != "c-11111" {
		t.Errorf("shards %+v", s.Shards)
	}
	if s.Endpoint != "c.n.svc.cluster.local:6379" {
		t.Errorf("endpoint %s", s.Endpoint)
	}
	expect(t, s, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonActive, "")
	expect(t, s, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonComplete, "")
	expect(t, s, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonHealthy, "")
}

// Whoever sees a new cluster Active finds its users and certificates looked at.
func TestANewClusterIsActiveWhenUsersAndCertificatesWereLookedAt(t *testing.T) {
	for _, c := range []struct {
		kind, reason string
		active       bool
	}{
		{v1alpha1.ConditionTLSReady, "", false}, // not said anything yet
		{v1alpha1.ConditionTLSReady, v1alpha1.ReasonWaiting, false},
		{v1alpha1.ConditionTLSReady, v1alpha1.ReasonTLSRotating, false},
		{v1alpha1.ConditionTLSReady, v1alpha1.ReasonTLSServed, true},
		{v1alpha1.ConditionTLSReady, v1alpha1.ReasonTLSNotServed, true},
		{v1alpha1.ConditionACLApplied, "", false},
		{v1alpha1.ConditionACLApplied, v1alpha1.ReasonWaiting, false},
		{v1alpha1.ConditionACLApplied, v1alpha1.ReasonACLPending, false},
		{v1alpha1.ConditionACLApplied, v1alpha1.ReasonACLApplied, true},
	} {
		for _, creating := range []bool{true, false} {
			o := healthy()
			if o.creating = creating; creating {
				o.cluster.Status.State = v1alpha1.StateCreating
			}
			o.cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
			good := map[string]string{v1alpha1.ConditionTLSReady: v1alpha1.ReasonTLSServed, v1alpha1.ConditionACLApplied: v1alpha1.ReasonACLApplied}
			say := func(c *v1alpha1.ValkeyCluster, said map[string]string) {
				c.Status.Conditions = nil
				for kind, reason := range said {
					if reason != "" {
						c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason})
					}
				}
			}
			said := maps.Clone(good)
			said[c.kind] = c.reason
			say(o.cluster, said)
			before := o.cluster.DeepCopy()
			decision := o.next()
			if want := c.active || !creating; decision.Complete != want || statusOf(o, outcome{decision: decision}).State == v1alpha1.StateActive != want {
				t.Errorf("%s %s, creating %t: %+v", c.kind, c.reason, creating, decision)
			}
			after := o.cluster.DeepCopy()
			say(after, good)
			if woken := lookedAt().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); woken == c.active {
				t.Errorf("from %q to %s: the cluster is looked at: %t", c.reason, good[c.kind], woken)
			}
		}
	}
}

func TestTheStatusOfTheSameObservationIsTheSame(t *testing.T) {
	o := healthy()
	out := outcome{decision: plan.Decision{Complete: true}}
	first := statusOf(o, out)
	o.cluster.Status = first
	again := statusOf(o, out)
	for i := range again.Conditions {
		if !again.Conditions[i].LastTransitionTime.Equal(&first.Conditions[i].LastTransitionTime) {
			t.Errorf("the transition time of %s changed without a transition", again.Conditions[i].Type)
		}
	}
}

// F-12, F-08
func TestANodeThatDoesNotAnswerMakesTheClusterUnreadyByName(t *testing.T) {
	o := healthy()
	o.reply("c-11111", topology.Reply{ID: replicaID, Err: errors.New("dial: i/o timeout")})
	s := statusOf(o, outcome{decision: plan.Decision{Waiting: "node c-11111 does not answer"}})
	if s.State != v1alpha1.StateActive || s.Ready != "1/2" {
		t.Errorf("state %s, ready %s", s.State, s.Ready)
	}
	expect(t, s, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodesNotReady, "c-11111: it does not answer: dial: i/o timeout")
	expect(t, s, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNodeUnreachable, "c-11111")
	expect(t, s, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaiting, "c-11111")
	if s.Shards[0].Primary != "c-00000" {
		t.Errorf("the other node's role went stale: %+v", s.Shards)
	}
}

func TestAPodThatIsGoneIsReported(t *testing.T) {
	o := healthy()
	delete(o.pods, "c-11111")
	delete(o.replies, "c-11111")
	o.reply("c-00000", o.replies["c-00000"])
	s := statusOf(o, outcome{decision: plan.Decision{Actions: []plan.Action{{Kind: plan.CreateNode, Reason: "node c-11111 is dead"}}}})
	expect(t, s, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodesNotReady, "c-11111: its pod is gone")
	expect(t, s, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonPodFailed, "c-11111")
	expect(t, s, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonReconciling, "node c-11111 is dead")
}

func TestANewClusterStaysCreatingUntilItIsComplete(t *testing.T) {
	o := healthy()
	o.creating = true
	o.cluster.Status = v1alpha1.ValkeyClusterStatus{}
	s := statusOf(o, outcome{decision: plan.Decision{Waiting: "pod c-11111 is pending: no room"}})
	if s.State != v1alpha1.StateCreating || s.TargetSpec == nil || s.TargetSpec.Shards != 1 || !strings.Contains(s.Message, "no room") {
		t.Errorf("status %+v", s)
	}
	expect(t, s, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCreating, "no room")
	s = statusOf(o, outcome{decision: plan.Decision{Complete: true}})
	if s.State != v1alpha1.StateActive || s.TargetSpec != nil {
		t.Errorf("a complete cluster is %s with target %v", s.State, s.TargetSpec)
	}
	expect(t, s, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonHealthy, "every node answers")
}

func TestAPausedClusterSaysSo(t *testing.T) {
	s := statusOf(healthy(), outcome{blocked: &problem{v1alpha1.ReasonPaused, "spec.paused is true"}})
	expect(t, s, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused, "spec.paused")
	expect(t, s, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonActive, "")
}

func TestAMissingConfigIsReportedAndARunningClusterStaysReady(t *testing.T) {
	o := healthy()
	o.config.problems = []settings.Problem{{Reason: v1alpha1.ReasonConfigNotFound, Message: "ValkeyConfig standard does not exist; existing: large"}}
	s := statusOf(o, outcome{decision: plan.Decision{Complete: true}})
	expect(t, s, v1alpha1.ConditionConfigResolved, metav1.ConditionFalse, v1alpha1.ReasonConfigNotFound, "existing: large")
	expect(t, s, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonActive, "")
	if o.blocking() != nil {
		t.Error("a missing config stops the repair of a running cluster")
	}
	o.creating = true
	if p := o.blocking(); p == nil || p.reason != v1alpha1.ReasonConfigNotFound {
		t.Errorf("a missing config does not stop creation: %v", p)
	}
}

func TestAnUnusableTLSSecretMakesTheClusterInvalid(t *testing.T) {
	o := healthy()
	o.cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "s"}
	o.tls.invalid = &problem{v1alpha1.ReasonTLSInvalid, "Secret s: tls.crt does not cover *.c.n.svc.cluster.local"}
	s := statusOf(o, outcome{blocked: o.tls.invalid})
	if s.State != v1alpha1.StateInvalid || s.Message != o.tls.invalid.message {
		t.Errorf("state %s: %s", s.State, s.Message)
	}
	expect(t, s, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTLSInvalid, "does not cover")
	if p := o.blocking(); p != o.tls.invalid {
		t.Error("topology actions go on")
	}
	o.cluster.Status = s
	o.tls.invalid = nil
	if s = statusOf(o, outcome{decision: plan.Decision{Complete: true}}); s.State != v1alpha1.StateActive {
		t.Errorf("after recovery the state is %s", s.State)
	}
}

func TestOnlyWhatPeopleHaveToHearOfBecomesAnEvent(t *testing.T) {
	trouble := condition(v1alpha1.ConditionDegraded, true, v1alpha1.ReasonPodFailed, "x")
	fine := condition(v1alpha1.ConditionDegraded, false, v1alpha1.ReasonHealthy, "y")
	progress := condition(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonWaiting, "z")
	for _, c := range []struct {
		name     string
		was, now *metav1.Condition
		want     string
	}{
		{"new trouble", &fine, &trouble, corev1.EventTypeWarning},
		{"trouble is over", &trouble, &fine, corev1.EventTypeNormal},
		{"all was well from the start", nil, &fine, ""},
		{"progress", nil, &progress, ""},
	} {
		kind, ok := noteworthy(c.was, *c.now)
		if ok != (c.want != "") || ok && kind != c.want {
			t.Errorf("%s: event %q %v, want %q", c.name, kind, ok, c.want)
		}
	}
}

func TestAServersLastWordsAreReported(t *testing.T) {
	for _, c := range []struct {
		state corev1.ContainerStateTerminated
		want  string
	}{
		{corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "a\nBad directive\n"}, "container ended with exit code 1: Bad directive"},
		{corev1.ContainerStateTerminated{ExitCode: 1, Message: "*** FATAL ***\n>>> 'maxmemory-policy x'\nno such policy\n\n"}, "container ended with exit code 1: >>> 'maxmemory-policy x' no such policy"},
		{corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}, "container ended with exit code 137, OOMKilled"},
	} {
		if got := terminated(&c.state); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestAClusterThatGrowsIsNotDegradedAndOneThatLostANodeIs(t *testing.T) {
	o := healthy()
	o.nodes[1].Spec.Lifecycle = v1alpha1.LifecycleJoining
	o.pods["c-11111"].Status.Conditions = nil
	s := statusOf(o, outcome{decision: plan.Decision{Waiting: "it joins"}})
	expect(t, s, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNodesNotReady, "c-11111")
	o.cluster.Status.Topology.ReplicasPerShard = 0
	s = statusOf(o, outcome{decision: plan.Decision{Waiting: "it joins"}})
	expect(t, s, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonHealthy, "")
	expect(t, s, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodesNotReady, "c-11111")
	o.cluster.Status.Topology.ReplicasPerShard = 1
	o.nodes = o.nodes[:1]
	s = statusOf(o, outcome{decision: plan.Decision{Waiting: "a node is made"}})
	expect(t, s, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNodesNotReady, "1 nodes are missing")
}

// A handover that was planned is no trouble, although the former primary follows the
// new one only after a moment.
func TestAPlannedHandoverIsNoTrouble(t *testing.T) {
	handedOver := func() *observation {
		o := healthy()
		rows := []topology.Member{
			{ID: primaryID, Role: topology.RoleReplica, PrimaryID: replicaID, ConfigEpoch: 2, LinkUp: true},
			{ID: replicaID, Role: topology.RolePrimary, ConfigEpoch: 2, LinkUp: true, Slots: slots.All()},
		}
		o.pods["c-00000"].Status.Conditions[0].Status = corev1.ConditionFalse
		o.reply("c-00000", topology.Reply{
			ID: primaryID, Members: rows, Info: topology.ClusterInfo{State: "ok"},
			Replication: topology.Replication{Role: topology.RoleReplica, LinkDownSeconds: -1, HasLinkDownSeconds: true},
		})
		o.reply("c-11111", topology.Reply{ID: replicaID, Members: rows, Info: topology.ClusterInfo{State: "ok"}})
		o.failovers = map[int32]time.Duration{0: 100 * time.Millisecond}
		return o
	}
	waiting := outcome{decision: plan.Decision{Waiting: "replica c-00000 is copying the data of shard 0"}}
	s := statusOf(handedOver(), waiting)
	if s.Ready != "2/2" || s.ReadyShards != 1 {
		t.Errorf("%s nodes and %d shards are ready", s.Ready, s.ReadyShards)
	}
	expect(t, s, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonActive, "")
	expect(t, s, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonHealthy, "")
	for what, spoil := range map[string]func(o *observation){
		"it takes long": func(o *observation) { o.failovers[0] = handover },
		"it copies everything anew": func(o *observation) {
			r := o.replies["c-00000"]
			r.Replication.SyncInProgress = true
			o.reply("c-00000", r)
		},
		"nobody asked for it": func(o *observation) { o.failovers = nil },
	} {
		o := handedOver()
		spoil(o)
		s := statusOf(o, waiting)
		if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDegraded); c == nil || c.Status != metav1.ConditionTrue {
			t.Errorf("%s, and the cluster is not degraded", what)
		}
	}
}

// S-03
func TestAFailingMigrationIsToldWithTheServersMessageAndOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Recorder: recorder, moments: newMoments()}
	o := healthy()
	status := func(message, tail string) v1alpha1.ValkeyClusterStatus {
		reason := "node c-00000 says: " + message + tail
		o.stalled = map[string]plan.Hold{"c-00000": {Remaining: time.Second, Reason: reason}}
		return statusOf(o, outcome{decision: plan.Decision{Waiting: "4096 slots can't move from shard 0 to shard 1: " + reason}})
	}
	moving := statusOf(o, outcome{decision: plan.Decision{Waiting: "4096 slots are on their way"}})
	first := status("no route", " (attempt 1, the next at 00:33:25 UTC)")
	expect(t, first, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonMigrationFailed, "no route (attempt 1")
	r.announce(o, moving, first)
	r.announce(o, moving, status("no route", " (attempt 2, the next at 00:33:35 UTC)"))
	if n := len(recorder.Events); n != 1 {
		t.Errorf("%d events of the same message, want 1", n)
	}
	r.announce(o, moving, status("out of memory", " (attempt 3, the next at 00:33:55 UTC)"))
	if n := len(recorder.Events); n != 2 {
		t.Errorf("%d events of two messages, want 2", n)
	}
}

// The API server takes 32768 bytes in a condition, and refuses the whole status with
// more: the cluster would show nothing new any more.
func TestATextOfAnyLengthFitsIntoTheStatus(t *testing.T) {
	o := healthy()
	o.cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	o.tls.invalid = &problem{v1alpha1.ReasonTLSInvalid, strings.Repeat("ä", 20000)}
	s := statusOf(o, outcome{})
	found := false
	for _, c := range s.Conditions {
		found = found || strings.HasSuffix(c.Message, "ä…")
		if len(c.Message) > 32768 {
			t.Errorf("%s has %d bytes of text", c.Type, len(c.Message))
		}
	}
	if !found {
		t.Error("no condition has the long text")
	}
}
