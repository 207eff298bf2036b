package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodState(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
	scheduled := corev1.PodSpec{NodeName: "node-a"}
	tests := []struct {
		name    string
		pod     corev1.Pod
		warning string
		want    PodState
	}{
		{
			name: "no room says what the scheduler says",
			pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory."},
			}}},
			want: PodState{Phase: "Pending", Problem: "Unschedulable: 0/3 nodes are available: 3 Insufficient memory."},
		},
		{
			name: "an image that can't be pulled",
			pod:  corev1.Pod{Spec: scheduled, Status: waiting("ImagePullBackOff", "Back-off pulling image \"valkey/valkey:9.9\"")},
			want: PodState{Phase: "ImagePullBackOff", Problem: "Back-off pulling image \"valkey/valkey:9.9\""},
		},
		{
			name: "a container that is being created is no problem",
			pod:  corev1.Pod{Spec: scheduled, Status: waiting("ContainerCreating", "")},
			want: PodState{Phase: "ContainerCreating"},
		},
		{
			name:    "unless the kubelet warned",
			pod:     corev1.Pod{Spec: scheduled, Status: waiting("ContainerCreating", "")},
			warning: "MountVolume.SetUp failed for volume \"tls\":\n secret \"main-operator-tls\" not found",
			want:    PodState{Phase: "ContainerCreating", Problem: "FailedMount: MountVolume.SetUp failed for volume \"tls\": secret \"main-operator-tls\" not found"},
		},
		{
			name: "a dead server says how it died",
			pod: corev1.Pod{Spec: scheduled, Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "Fatal config file error\x1b[31m"}},
			}}}},
			want: PodState{Phase: "Error", Problem: `exited with code 1: Fatal config file error\x1b[31m`},
		},
		{
			name: "an evicted pod",
			pod:  corev1.Pod{Spec: scheduled, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}},
			want: PodState{Phase: "Evicted", Problem: "low on memory"},
		},
		{
			name: "a pod on its way out",
			pod:  corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Spec: scheduled, Status: corev1.PodStatus{Phase: corev1.PodRunning}},
			want: PodState{Phase: "Terminating"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.pod.Name = "main-3fa2c"
			var events []corev1.Event
			if tt.warning != "" {
				events = []corev1.Event{{
					InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "main-3fa2c"},
					Type:           corev1.EventTypeWarning, Reason: "FailedMount", Message: tt.warning,
				}}
			}
			if diff := cmp.Diff(tt.want, podState(&tt.pod, events)); diff != "" {
				t.Errorf("podState() (-want +got):\n%s", diff)
			}
		})
	}
}
