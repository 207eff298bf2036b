package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func TestProgress(t *testing.T) {
	creating := func() *plugintest.Fixture {
		f := plugintest.Active("main", 3, 1)
		f.Cluster.Status.State = v1alpha1.StateCreating
		f.Cluster.Status.TargetSpec = &v1alpha1.TargetTopology{Shards: 3, ReplicasPerShard: 1}
		f.Cluster.Status.Shards = nil
		f.Condition(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonWaiting, "waiting for 6 pods")
		for _, n := range f.Nodes {
			n.Spec.Lifecycle, n.Status.Ready = v1alpha1.LifecycleJoining, false
		}
		return f
	}
	pending := func(f *plugintest.Fixture, i int) {
		f.Pods[i].Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}},
		}}}
	}
	tests := []struct {
		name   string
		make   func() *plugintest.Fixture
		denied []string
		want   Progress
	}{
		{
			name: "an Active cluster is complete", make: func() *plugintest.Fixture { return plugintest.Active("main", 3, 1) },
			want: Progress{State: "Active", Nodes: 6, Running: 6, Joined: 6, Slots: 16384, Replicas: 3, InSync: 3},
		},
		{
			name: "a creating one waits", make: creating,
			want: Progress{State: "Creating", Nodes: 6, Running: 6, Replicas: 3, Waiting: "waiting for 6 pods"},
		},
		{
			name: "the snapshot counts, not an edit made meanwhile",
			make: func() *plugintest.Fixture { f := creating(); f.Cluster.Spec.Shards = 6; return f },
			want: Progress{State: "Creating", Nodes: 6, Running: 6, Replicas: 3, Waiting: "waiting for 6 pods"},
		},
		{
			name: "what keeps pods from starting comes before what waits for them",
			make: func() *plugintest.Fixture { f := creating(); pending(f, 0); pending(f, 3); return f },
			want: Progress{State: "Creating", Nodes: 6, Running: 4, Replicas: 3, Waiting: "main-3fa2c is ErrImagePull: not found (and 1 more)"},
		},
		{
			name: "a missing config comes before everything",
			make: func() *plugintest.Fixture {
				f := creating()
				pending(f, 0)
				f.Condition(v1alpha1.ConditionConfigResolved, false, v1alpha1.ReasonConfigNotFound, `ValkeyConfig "x" doesn't exist`)
				return f
			},
			want: Progress{State: "Creating", Nodes: 6, Running: 5, Replicas: 3, Waiting: `ConfigNotFound: ValkeyConfig "x" doesn't exist`},
		},
		{
			name: "what can't be read is not counted", make: creating, denied: []string{"pods", "valkeynodes"},
			want: Progress{State: "Creating", Nodes: 6, Running: -1, Joined: -1, Replicas: 3, InSync: -1, Waiting: "waiting for 6 pods"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := fetch(t, denying(plugintest.Client(tt.make().Objects()...), tt.denied...))
			if diff := cmp.Diff(tt.want, ProgressOf(s, plugintest.Now)); diff != "" {
				t.Errorf("ProgressOf() (-want +got):\n%s", diff)
			}
		})
	}
}
