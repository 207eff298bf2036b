package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

func TestPhaseOfAPod(t *testing.T) {
	pod := func(phase corev1.PodPhase, ip string, state corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, PodIP: ip, ContainerStatuses: []corev1.ContainerStatus{{State: state}}}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	for _, c := range []struct {
		what    string
		pod     *corev1.Pod
		created bool
		want    plan.PodPhase
	}{
		{"no pod yet", nil, false, plan.PodNone},
		{"no pod any more", nil, true, plan.PodGone},
		{"not scheduled", &corev1.Pod{}, true, plan.PodPending},
		{"running", pod(corev1.PodRunning, "10.0.0.1", running), true, plan.PodRunning},
		{"running without an address", pod(corev1.PodRunning, "", running), true, plan.PodPending},
		{"its container ended", pod(corev1.PodRunning, "10.0.0.1", ended), true, plan.PodTerminated},
		{"evicted before it ran", pod(corev1.PodFailed, "", corev1.ContainerState{}), true, plan.PodTerminated},
		{"completed", pod(corev1.PodSucceeded, "10.0.0.1", running), true, plan.PodTerminated},
	} {
		if got := plan.PhaseOf(c.pod, c.created); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestTheSnapshotIsTheTargetOnlyUntilItIsReached(t *testing.T) {
	spec, snapshot := v1alpha1.TargetTopology{Shards: 5, ReplicasPerShard: 1}, v1alpha1.TargetTopology{Shards: 3}
	for _, c := range []struct {
		state    v1alpha1.ClusterState
		snapshot *v1alpha1.TargetTopology
		assigned bool
		creating bool
		want     v1alpha1.TargetTopology
	}{
		{"", nil, false, true, spec},
		{v1alpha1.StateCreating, &snapshot, false, true, spec},
		{v1alpha1.StateCreating, &snapshot, true, true, snapshot},
		{v1alpha1.StateInvalid, &snapshot, true, true, snapshot},
		{v1alpha1.StateInvalid, nil, true, false, spec},
		{v1alpha1.StateActive, nil, true, false, spec},
	} {
		cluster := &v1alpha1.ValkeyCluster{
			Spec:   v1alpha1.ValkeyClusterSpec{Shards: spec.Shards, ReplicasPerShard: spec.ReplicasPerShard},
			Status: v1alpha1.ValkeyClusterStatus{State: c.state, TargetSpec: c.snapshot},
		}
		if got, creating := plan.TargetOf(cluster, c.assigned), plan.Creating(cluster); got != c.want || creating != c.creating {
			t.Errorf("%+v: target %+v, creating %v", c, got, creating)
		}
	}
}
