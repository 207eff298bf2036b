package inspect

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func fetch(t *testing.T, r client.Reader, name string) *Snapshot {
	t.Helper()
	s, err := Fetch(t.Context(), r, plugintest.Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names[T any](items []T, name func(*T) string) []string {
	var all []string
	for i := range items {
		all = append(all, name(&items[i]))
	}
	return all
}

func TestFetchTakesOnlyWhatBelongsToTheCluster(t *testing.T) {
	f, like := plugintest.Active("main", 1, 1), plugintest.Active("main-2", 1, 1)
	f.Event("ValkeyCluster", "main", "Normal", "Active", "it is", time.Minute)
	f.Event("Pod", "main-00abc", "Warning", "Failed", "a former pod", time.Minute)
	like.Event("ValkeyCluster", "main-2", "Normal", "Active", "it is", time.Minute)
	like.Event("Pod", "main-2-00abc", "Warning", "Failed", "a former pod", time.Minute)
	like.Event("Pod", "main-frontend", "Warning", "Failed", "somebody else's", time.Minute)
	s := fetch(t, plugintest.Client(append(f.Objects(), like.Objects()...)...), "main")

	wantNodes := []string{f.Nodes[0].Name, f.Nodes[1].Name}
	if diff := cmp.Diff(wantNodes, names(s.Nodes.Items, func(n *v1alpha1.ValkeyNode) string { return n.Name })); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantNodes, names(s.Pods.Items, func(p *corev1.Pod) string { return p.Name })); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"main-00abc", "main"}, names(s.Events.Items, func(e *corev1.Event) string { return e.InvolvedObject.Name })); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestFetchOfAMissingClusterListsWhatExists(t *testing.T) {
	c := plugintest.Client(append(plugintest.Active("main", 1, 0).Objects(), plugintest.Active("cache", 1, 0).Objects()...)...)
	_, err := Fetch(t.Context(), c, plugintest.Namespace, "mian")
	if want := `cluster "mian" not found in namespace team-a: it has cache, main`; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	if !apierrors.IsNotFound(err) {
		t.Error("the error is no longer a NotFound")
	}
	_, err = Fetch(t.Context(), c, "team-b", "main")
	if err == nil || !strings.Contains(err.Error(), "there is none in it") {
		t.Errorf("error = %v, want that namespace team-b has none", err)
	}
}

// denying refuses lists of a kind.
func denying(c client.WithWatch, kinds ...string) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			resource := strings.ToLower(strings.TrimSuffix(gvk.Kind, "List")) + "s"
			for _, k := range kinds {
				if k == resource {
					return plugintest.Forbidden("list", resource, plugintest.Namespace)
				}
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				for _, k := range kinds {
					if k == "configmaps" {
						return plugintest.Forbidden("get", k, plugintest.Namespace)
					}
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}

func TestEachPartCarriesItsOwnError(t *testing.T) {
	c := denying(plugintest.Client(plugintest.Active("main", 1, 1).Objects()...), "pods", "events")
	s := fetch(t, c, "main")
	if s.Nodes.Err != nil || len(s.Nodes.Items) != 2 {
		t.Errorf("nodes = %d, %v, want both", len(s.Nodes.Items), s.Nodes.Err)
	}
	if want := "pods can't be read: needs list pods in namespace team-a"; s.Pods.Err == nil || s.Pods.Err.Error() != want {
		t.Errorf("pods: %v, want %s", s.Pods.Err, want)
	}
	if s.Events.Err == nil {
		t.Error("events: no error")
	}
	for _, n := range s.NodeList() {
		if n.Pod != nil || n.Problem != "" || n.Role == RoleUnknown {
			t.Errorf("node %s = %+v, want its role, no pod and no problem", n.Name, n)
		}
	}
}

func TestNodesAreShownFromWhatCanBeRead(t *testing.T) {
	f := plugintest.Active("main", 1, 1)
	want := []Node{{Name: f.Nodes[0].Name, Role: "primary"}, {Name: f.Nodes[1].Name, Role: "replica"}}
	for _, denied := range [][]string{{"valkeynodes"}, {"valkeynodes", "pods"}} {
		var got []Node
		for _, n := range fetch(t, denying(plugintest.Client(f.Objects()...), denied...), "main").NodeList() {
			got = append(got, Node{Name: n.Name, Role: n.Role})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("without %v (-want +got):\n%s", denied, diff)
		}
	}
}

func TestHealth(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*plugintest.Fixture)
		healthy bool
		reason  string
		message string
	}{
		{name: "Ready is healthy", change: func(*plugintest.Fixture) {}, healthy: true},
		{
			name: "not Ready says why", reason: "NodesNotReady", message: "main-3fa2c: its pod is gone",
			change: func(f *plugintest.Fixture) {
				f.Condition(v1alpha1.ConditionReady, false, "NodesNotReady", "main-3fa2c: its pod is gone")
			},
		},
		{
			name: "Ready of a former spec proves nothing", reason: "NotSeenYet", message: "the manager has not looked at generation 2 yet",
			change: func(f *plugintest.Fixture) {
				f.Cluster.Generation = 2
				f.Cluster.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &metav1.Time{Time: plugintest.Now.Add(-3 * time.Second)}}}
			},
		},
		{
			name: "a change that nobody sees for long means that no manager runs", reason: "ManagerSilent",
			message: "no manager seems to be at work: for over 30s none has looked at generation 2; check with: kubectl get deployment valkey-operator -n valkey-operator",
			change: func(f *plugintest.Fixture) {
				f.Cluster.Generation = 2
				f.Cluster.ManagedFields = []metav1.ManagedFieldsEntry{
					{Manager: "kubectl", Time: &metav1.Time{Time: plugintest.Now.Add(-2 * time.Minute)}},
					// The manager's own writes of the status say nothing about the spec.
					{Manager: "manager", Subresource: "status", Time: &metav1.Time{Time: plugintest.Now.Add(-time.Second)}},
				}
			},
		},
		{
			name: "no status at all after five minutes means the same", reason: "ManagerSilent",
			message: "no manager seems to be at work: for over 30s none has looked at generation 1; check with: kubectl get deployment valkey-operator -n valkey-operator",
			change:  func(f *plugintest.Fixture) { f.Cluster.Status = v1alpha1.ValkeyClusterStatus{} },
		},
		{
			name: "a cluster on its way out is not healthy", reason: "Deleting", message: "it is being deleted",
			change: func(f *plugintest.Fixture) {
				f.Cluster.DeletionTimestamp = &metav1.Time{Time: plugintest.Now}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := plugintest.Active("main", 1, 1)
			tt.change(f)
			want := Health{Healthy: tt.healthy, Reason: tt.reason, Message: tt.message}
			if diff := cmp.Diff(want, HealthOf(f.Cluster, plugintest.Now)); diff != "" {
				t.Errorf("HealthOf() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsAtRest(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	for _, tt := range []struct {
		condition metav1.Condition
		want      bool
	}{
		{condition("Ready", "True", "Active"), true},
		{condition("Ready", "Unknown", ""), false},
		{condition("Progressing", "False", "Complete"), true},
		{condition("Progressing", "False", "ConfigNotFound"), false},
		{condition("Progressing", "True", "Reconciling"), false},
		{condition("Degraded", "False", "Healthy"), true},
		{condition("Degraded", "True", "PodFailed"), false},
		{condition("TLSReady", "False", "TLSDisabled"), true},
		{condition("TLSReady", "False", "TLSInvalid"), false},
		{condition("ExternalAccessReady", "False", "Disabled"), true},
		{condition("ACLApplied", "False", "Pending"), false},
	} {
		if got := AtRest(tt.condition); got != tt.want {
			t.Errorf("AtRest(%s=%s %s) = %v, want %v", tt.condition.Type, tt.condition.Status, tt.condition.Reason, got, tt.want)
		}
	}
}

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

func TestUsers(t *testing.T) {
	bound := []v1alpha1.ACLBinding{{Username: "app"}}
	withBoundConfig := func() []client.Object {
		menu := plugintest.Menu()
		for _, o := range menu {
			if c, ok := o.(*v1alpha1.ValkeyConfig); ok && c.Name == "standard" {
				c.Spec.ACL = bound
			}
		}
		return menu
	}
	tests := []struct {
		name   string
		change func(*plugintest.Fixture)
		menu   []client.Object
		denied []string
		want   Users
		err    string
	}{
		{name: "the file in force says that everybody may", want: Users{Known: true, Open: true}},
		{
			name:   "a binding of the cluster closes it, whatever can be read",
			change: func(f *plugintest.Fixture) { f.Cluster.Spec.ACL = bound },
			denied: []string{"configmaps", "valkeyconfigs"},
			want:   Users{Known: true, Bound: []string{"app"}},
		},
		{
			name: "the file in force names the users of the config",
			change: func(f *plugintest.Fixture) {
				f.ACL.Data[objects.ACLFile] = "user default off\nuser ops on #00 ~* +@all\nuser app on #00 ~a:* +get\nuser _momento_repl on #00 +psync\n"
			},
			want: Users{Known: true, Bound: []string{"app", "ops"}},
		},
		{
			name: "a bound default user is closed",
			change: func(f *plugintest.Fixture) {
				f.ACL.Data[objects.ACLFile] = "user default on #00 ~* +@read\n"
			},
			want: Users{Known: true, Bound: []string{"default"}},
		},
		{
			name: "who may not read ConfigMaps is told from the config", denied: []string{"configmaps"}, menu: withBoundConfig(),
			want: Users{Known: true, Bound: []string{"app"}},
		},
		{
			name: "who may read neither is told why", denied: []string{"configmaps", "valkeyconfigs"},
			err: "configmaps can't be read: needs get configmaps in namespace team-a",
		},
		{
			name:   "before anything is published nothing is known, and nothing amiss",
			change: func(f *plugintest.Fixture) { f.ACL = nil },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := plugintest.Active("main", 1, 1)
			if tt.change != nil {
				tt.change(f)
			}
			menu := tt.menu
			if menu == nil {
				menu = plugintest.Menu()
			}
			c := denying(plugintest.Client(append(f.Objects(), menu...)...), tt.denied...)
			s := fetch(t, c, "main")
			s.Surroundings(t.Context(), c, Namespaced)
			got := s.Users
			if (got.Err == nil) != (tt.err == "") || got.Err != nil && got.Err.Error() != tt.err {
				t.Errorf("error = %v, want %q", got.Err, tt.err)
			}
			got.Err = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("users (-want +got):\n%s", diff)
			}
		})
	}
}

func TestZonesOfNodesAreReadOnlyWhenPodsDontTell(t *testing.T) {
	f := plugintest.Active("main", 1, 0)
	asked := 0
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", Labels: map[string]string{corev1.LabelTopologyZone: "zone-a"}}}
	zone := func(scope Scope) string {
		asked = 0
		c := interceptor.NewClient(plugintest.Client(append(f.Objects(), node)...), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*corev1.NodeList); ok {
					asked++
				}
				return c.List(ctx, list, opts...)
			},
		})
		s := fetch(t, c, "main")
		s.Surroundings(t.Context(), c, scope)
		return s.NodeList()[0].Zone
	}
	if got := zone(ClusterWide); got != "a" || asked != 0 {
		t.Errorf("labelled pod: zone %q after %d requests, want a after none", got, asked)
	}
	delete(f.Pods[0].Labels, corev1.LabelTopologyZone)
	if got := zone(ClusterWide); got != "zone-a" || asked != 1 {
		t.Errorf("unlabelled pod: zone %q after %d requests, want zone-a after one", got, asked)
	}
	if got := zone(Namespaced); got != "" || asked != 0 {
		t.Errorf("namespaced: zone %q after %d requests, want none", got, asked)
	}
}

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
			s := fetch(t, denying(plugintest.Client(tt.make().Objects()...), tt.denied...), "main")
			if diff := cmp.Diff(tt.want, ProgressOf(s, plugintest.Now)); diff != "" {
				t.Errorf("ProgressOf() (-want +got):\n%s", diff)
			}
		})
	}
}
