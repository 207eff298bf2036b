package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

func TestAPortLeadsToAPrimaryThatIsReadyForAWhile(t *testing.T) {
	outside := announce.Values{Hostname: "shard-0.example", ClientPort: 30000}
	for name, c := range map[string]struct {
		ready    corev1.ConditionStatus
		since    time.Duration
		external bool
		inForce  bool
		want     string
	}{
		"ready":                    {corev1.ConditionTrue, time.Minute, true, true, ""},
		"just ready":               {corev1.ConditionTrue, time.Second, true, true, "pod c-00000 has just become ready"},
		"not ready":                {corev1.ConditionFalse, time.Minute, true, true, "pod c-00000 is not ready"},
		"nobody is led":            {corev1.ConditionFalse, time.Minute, true, false, ""},
		"no port is to lead there": {corev1.ConditionFalse, time.Minute, false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			o.outside.inPlay = true
			o.nodes[0].Spec.External, o.nodes[1].Spec.External = c.external, true
			if c.inForce {
				o.outside.situation.Members = []announce.Member{{Name: "c-00000", Exposed: true, Port: 30000, Now: &outside}}
			}
			o.pods["c-00000"].Status.Conditions = append(o.pods["c-00000"].Status.Conditions,
				corev1.PodCondition{Type: corev1.PodReady, Status: c.ready})
			o.open = map[string]time.Duration{"c-00000": c.since}
			if got := o.unrouted()[0]; got != c.want {
				t.Errorf("shard 0: %q, want %q", got, c.want)
			}
		})
	}
}

// A port outside is open three seconds after its pod was ready and had the label.
func TestAPortThatHasJustComeToLeadToAPodIsOpening(t *testing.T) {
	r, o := &Reconciler{moments: newMoments()}, healthy()
	const name = "c-00000"
	outside := announce.Values{Hostname: "shard-0.example", ClientPort: 30000}
	o.outside.situation.Members = []announce.Member{{Name: name, Exposed: true, Port: 30000, Now: &outside}}
	opening := func(after time.Duration, label string, ready corev1.ConditionStatus) bool {
		pod := o.pods[name]
		pod.Labels = map[string]string{v1alpha1.LabelExternal: label}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		o.now = o.now.Add(after)
		o.open = map[string]time.Duration{name: r.opened(o, name)}
		return o.external(&o.nodes[0], pod).Opening
	}
	for i, step := range []struct {
		after time.Duration
		label string
		ready corev1.ConditionStatus
		want  bool
	}{
		{0, "", corev1.ConditionTrue, true},
		{time.Minute, "true", corev1.ConditionFalse, true},
		{time.Minute, "true", corev1.ConditionTrue, true},
		{routed - time.Second, "true", corev1.ConditionTrue, true},
		{time.Second, "true", corev1.ConditionTrue, false},
		{time.Minute, "true", corev1.ConditionTrue, false},
		{time.Minute, "true", corev1.ConditionFalse, true},
		{time.Minute, "", corev1.ConditionTrue, true},
	} {
		if got := opening(step.after, step.label, step.ready); got != step.want {
			t.Errorf("step %d: opening %t, want %t", i, got, step.want)
		}
	}
	o.outside.situation.Members = nil
	if opening(0, "", corev1.ConditionTrue) {
		t.Error("a port that nobody is directed to is waited for")
	}
}

// A pod of a node that was replaced may have clients until its server or its time is over.
func TestAPodEndsUntilItsServerOrItsTimeIsOver(t *testing.T) {
	outside := announce.Values{Hostname: "shard-0.example", ClientPort: 30000}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	stopped := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	for name, c := range map[string]struct {
		state   corev1.ContainerState
		left    time.Duration
		inForce bool
		want    string
	}{
		"it runs":                 {running, 20 * time.Second, true, "c-old"},
		"nobody is directed here": {running, 20 * time.Second, false, ""},
		"its server has stopped":  {stopped, 20 * time.Second, true, ""},
		"its time is over":        {running, -time.Second, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			if c.inForce {
				o.outside.situation.Members = []announce.Member{{Name: "c-00000", Exposed: true, Port: 30000, Now: &outside}}
			}
			o.former = map[string]*corev1.Pod{"c-old": {
				ObjectMeta: metav1.ObjectMeta{
					Name: "c-old", Labels: map[string]string{v1alpha1.LabelShardIndex: "3"},
					DeletionTimestamp: ptr.To(metav1.NewTime(o.now.Add(c.left))),
				},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{State: c.state}}},
			}}
			if got := o.ending(); got[3] != c.want || len(got) > 1 {
				t.Errorf("ending: %v, want %q in shard 3", got, c.want)
			}
		})
	}
}

// A shard is exposed when all its nodes announce their outside name and all their ports
// lead somewhere; a port of which that is not known yet is announced by nobody.
func TestAShardIsExposedWhenEachOfItsNodesIs(t *testing.T) {
	o := healthy()
	o.outside.inPlay = true
	o.outside.endpoints = []v1alpha1.ExternalEndpoint{{ShardIndex: 0, Ports: []int32{30000, 30001}}}
	named := func(shard int32) announce.Values {
		return announce.Values{Hostname: fmt.Sprintf("shard-%d.example", shard), EndpointType: v1alpha1.EndpointHostname, ClientPort: 30000}
	}
	first, second := named(0), announce.Values{Hostname: "shard-1.example"}
	o.outside.situation.Members = []announce.Member{{Name: "a", Now: &first}, {Name: "b", ShardIndex: 1, Now: &second}, {Name: "c", ShardIndex: 2, Now: &first}}
	o.outside.pending = map[int32]string{2: "no node port"}
	want := map[int32]string{1: "node b does not announce its outside name yet", 2: "no node port"}
	if diff := cmp.Diff(want, o.unexposed()); diff != "" {
		t.Errorf("not exposed (-want +got):\n%s", diff)
	}
	if port := o.outsidePort(&o.nodes[1]); port != 30001 {
		t.Errorf("node 1 of a shard that waits for nothing has port %d", port)
	}
	o.outside.pending[0] = "the load balancer has no address"
	if port := o.outsidePort(&o.nodes[1]); port != 0 {
		t.Errorf("node 1 of a shard that waits has port %d", port)
	}
}
