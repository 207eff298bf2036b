package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

func build(c client.Client) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		return (&Options{access: access, flags: flags, streams: streams, clock: clocktesting.NewFakeClock(plugintest.Now), client: c}).command()
	}
}

// menu is what clusters choose from. Nodes of active are made from config standard.
func menu() []client.Object {
	config := func(name, base string, memory string, settings map[string]v1alpha1.SettingValue) *v1alpha1.ValkeyConfig {
		c := &v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ValkeyConfigSpec{BaseRef: base, Valkey: settings}}
		if memory != "" {
			q := resource.MustParse(memory)
			c.Spec.Resources = &v1alpha1.Resources{Memory: &q}
		}
		return c
	}
	standard := config("standard", "", "", map[string]v1alpha1.SettingValue{"maxmemory-policy": "allkeys-lru"})
	standard.Spec.ImageRef = "valkey-9.1"
	return []client.Object{
		&v1alpha1.ValkeyImage{ObjectMeta: metav1.ObjectMeta{Name: "valkey-9.1"}, Spec: v1alpha1.ValkeyImageSpec{Repository: "valkey/valkey", Tag: "9.1.2", Version: "9.1.2"}},
		standard,
		config("large", "standard", "2Gi", nil),
		config("tuned", "standard", "", map[string]v1alpha1.SettingValue{"maxmemory-policy": "allkeys-lfu", "hz": "20"}),
		config("many-databases", "standard", "", map[string]v1alpha1.SettingValue{"cluster-databases": "4"}),
		config("broken", "standard", "", map[string]v1alpha1.SettingValue{"port": "7000"}),
	}
}

func active(shards, replicas int32) *plugintest.Fixture {
	f := plugintest.Active("demo", shards, replicas)
	for _, n := range f.Nodes {
		n.Spec.ValkeySettings = map[string]v1alpha1.SettingValue{"maxmemory-policy": "allkeys-lru"}
		n.CreationTimestamp = f.Cluster.CreationTimestamp
	}
	return f
}

func changed(f *plugintest.Fixture, change func(*plugintest.Fixture)) *plugintest.Fixture {
	change(f)
	return f
}

// dead ends the container of a node.
func dead(f *plugintest.Fixture, i int) {
	f.Nodes[i].Status.Ready = false
	f.Pods[i].Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}},
	}}
	unseen(f, i)
}

// gone takes the pod of a node away.
func gone(f *plugintest.Fixture, i int) {
	f.Nodes[i].Status.Ready = false
	f.Pods = slices.DeleteFunc(f.Pods, func(p *corev1.Pod) bool { return p.Name == f.Nodes[i].Name })
	unseen(f, i)
}

// unseen takes a node out of what the manager saw.
func unseen(f *plugintest.Fixture, i int) {
	for s := range f.Cluster.Status.Shards {
		shard := &f.Cluster.Status.Shards[s]
		if shard.Primary == f.Nodes[i].Name {
			shard.Primary = ""
		}
		shard.Replicas = slices.DeleteFunc(shard.Replicas, func(name string) bool { return name == f.Nodes[i].Name })
	}
}

func newCluster() *plugintest.Fixture {
	f := active(2, 1)
	f.Nodes, f.Pods = nil, nil
	f.Cluster.CreationTimestamp = metav1.NewTime(plugintest.Now)
	f.Cluster.Status = v1alpha1.ValkeyClusterStatus{}
	return f
}

// growing was asked for a second shard, whose first node has joined and whose
// second one's pod is pending.
func growing() *plugintest.Fixture {
	f := active(2, 1)
	f.Cluster.Generation, f.Cluster.Status.ObservedGeneration = 2, 2
	whole := &f.Cluster.Status.Shards[0]
	whole.Slots, whole.SlotCount = "0-16383", 16384
	f.Cluster.Status.Shards = f.Cluster.Status.Shards[:1]
	f.Nodes[2].Spec.Lifecycle, f.Nodes[3].Spec.Lifecycle = v1alpha1.LifecycleJoining, v1alpha1.LifecycleJoining
	f.Nodes[2].Status.Ready, f.Nodes[3].Status = false, v1alpha1.ValkeyNodeStatus{}
	f.Pods[3].Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"},
	}}
	f.Condition(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonWaiting, "node demo-40b50 does not answer: Unschedulable: 0/3 nodes are available")
	return f
}

func TestForecasts(t *testing.T) {
	tests := map[string]struct {
		fixture *plugintest.Fixture
		args    []string
	}{
		"as-wished":          {active(3, 1), nil},
		"more-shards":        {active(3, 1), []string{"--shards", "4"}},
		"fewer-shards":       {active(3, 1), []string{"--shards", "2"}},
		"more-replicas":      {active(3, 1), []string{"--replicas", "2"}},
		"no-replicas":        {active(3, 1), []string{"--replicas", "0"}},
		"everything":         {active(2, 1), []string{"--shards", "3", "--replicas", "0", "--config", "large"}},
		"config-rolls":       {active(2, 1), []string{"--config", "large"}},
		"config-live":        {active(2, 1), []string{"--config", "tuned"}},
		"config-start-only":  {active(1, 0), []string{"--config", "many-databases"}},
		"no-change":          {active(2, 1), []string{"--shards", "2", "--config", "standard"}},
		"every-step":         {active(1, 1), []string{"--shards", "2", "-o", "wide"}},
		"many-steps":         {active(3, 1), []string{"--shards", "9"}},
		"new":                {newCluster(), nil},
		"growing":            {growing(), nil},
		"dead-primary":       {changed(active(3, 1), func(f *plugintest.Fixture) { dead(f, 2) }), nil},
		"dead-replica":       {changed(active(3, 1), func(f *plugintest.Fixture) { gone(f, 3) }), nil},
		"silent":             {changed(active(3, 1), func(f *plugintest.Fixture) { unseen(f, 3); f.Nodes[3].Status.Ready = false }), nil},
		"paused":             {changed(active(3, 1), func(f *plugintest.Fixture) { f.Cluster.Spec.Paused = true; dead(f, 3) }), nil},
		"lost":               {changed(active(3, 0), func(f *plugintest.Fixture) { dead(f, 1) }), nil},
		"awaited":            {awaited(""), nil},
		"loss-acknowledged":  {awaited("1a2b3c4d"), nil},
		"restart-under-way":  {restarting(), nil},
		"failover-asked-for": {changed(active(2, 1), func(f *plugintest.Fixture) { ask(f, request.Failover, "1a2b3c4d 1") }), nil},
	}
	for name, tt := range tests {
		for _, terminal := range []bool{true, false} {
			c := plugintest.Client(append(tt.fixture.Objects(), menu()...)...)
			out, errOut, code := plugintest.Run(t, build(c), terminal, append(tt.args, "demo")...)
			if code != exit.OK || errOut != "" {
				t.Errorf("%s: exit %d with %q", name, code, errOut)
			}
			plugintest.Golden(t, name+map[bool]string{true: ".terminal", false: ".pipe"}[terminal]+".txt", out)
		}
	}
}

func ask(f *plugintest.Fixture, verb, value string) {
	f.Cluster.Annotations = map[string]string{request.Key(verb): value}
}

// awaited has lost the only node of shard 1, which may be alive.
func awaited(acknowledged string) *plugintest.Fixture {
	f := active(3, 0)
	gone(f, 1)
	f.Condition(v1alpha1.ConditionDegraded, true, v1alpha1.ReasonCopiesAwaited, "node demo-40b3d may still hold the data of shard 1; bring it back, or accept the loss")
	if acknowledged != "" {
		ask(f, request.Acknowledge, acknowledged)
	}
	return f
}

// restarting has replaced the replica of shard 0 so far.
func restarting() *plugintest.Fixture {
	f := active(2, 1)
	ask(f, request.Restart, "1a2b3c4d 2026-06-01T11:58:00Z")
	f.Nodes[1].CreationTimestamp = metav1.NewTime(plugintest.Now)
	f.Cluster.Status.Requests = []v1alpha1.RequestStatus{{Verb: "restart", ID: "1a2b3c4d", State: "Running", Message: "3 nodes are still to be replaced"}}
	f.Condition(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonReconciling, "primary demo-3fa2c is outdated (a restart was asked for), replica demo-3fa3f takes over shard 0")
	return f
}

func TestForecastsForPrograms(t *testing.T) {
	c := plugintest.Client(append(active(1, 1).Objects(), menu()...)...)
	for _, format := range []string{output.JSON, output.YAML} {
		out, errOut, code := plugintest.Run(t, build(c), false, "demo", "--shards", "2", "--config", "tuned", "-o", format)
		if code != exit.OK || errOut != "" {
			t.Errorf("%s: exit %d with %q", format, code, errOut)
		}
		plugintest.Golden(t, "change."+format, out)
	}
}

// forecast runs the command for a program.
func forecast(t *testing.T, f *plugintest.Fixture, args ...string) Report {
	t.Helper()
	c := plugintest.Client(append(f.Objects(), menu()...)...)
	out, errOut, code := plugintest.Run(t, build(c), false, append(args, "demo", "-o", "json")...)
	var r Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exit.OK {
		t.Fatalf("exit %d with %q: %v", code, errOut, err)
	}
	return r
}

func TestALargeRollIsCountedInFull(t *testing.T) {
	small, large := forecast(t, active(3, 1), "--config", "large"), forecast(t, active(31, 1), "--config", "large")
	if small.Effect.NodesReplaced != 6 || small.Effect.Failovers != 3 || small.ShardsAlike != nil {
		t.Errorf("a small one: %+v, alike %v", small.Effect, small.ShardsAlike)
	}
	if large.Effect.NodesReplaced != 62 || large.Effect.Failovers != 31 || len(large.ShardsAlike) != 30 || len(large.Replaced) != 62 {
		t.Errorf("a large one: %+v, alike %v", large.Effect, large.ShardsAlike)
	}
	creates := 0
	for _, s := range large.Steps {
		if s.Action == "CreateNode" {
			creates++
		}
	}
	if creates != 2 {
		t.Errorf("%d nodes are created in the steps that are told, want those of one shard", creates)
	}
}

func TestACreationIsCompletedBeforeItsEditIsApplied(t *testing.T) {
	f := active(2, 0)
	f.Cluster.Status.State = v1alpha1.StateCreating
	f.Cluster.Status.TargetSpec = &v1alpha1.TargetTopology{Shards: 2}
	f.Cluster.Spec.ReplicasPerShard = 1
	gone(f, 1) // shard 1 never came up
	f.Cluster.Status.Shards[1] = v1alpha1.ShardStatus{Index: 1}
	var order []string
	for _, s := range forecast(t, f).Steps {
		if s.Action == "CreateNode" || s.Action == "AssignSlots" {
			order = append(order, fmt.Sprint(s.Action, " ", s.Shard))
		}
	}
	if got, want := strings.Join(order, ", "), "CreateNode 1, AssignSlots 1, CreateNode 0, CreateNode 1"; got != want {
		t.Errorf("steps %s, want %s", got, want)
	}
}

func TestWhatCannotBeToldIsAnError(t *testing.T) {
	deleted := active(1, 0)
	deleted.Cluster.Finalizers, deleted.Cluster.DeletionTimestamp = []string{"x"}, &metav1.Time{Time: plugintest.Now}
	for name, tt := range map[string]struct {
		fixture *plugintest.Fixture
		denied  string
		args    []string
		want    string
	}{
		"no such cluster": {active(1, 0), "", []string{"dmeo"}, `error: cluster "dmeo" not found in namespace team-a: it has demo`},
		"no such config": {
			active(1, 0), "",
			[]string{"demo", "--config", "lage"},
			`error: ValkeyConfig "lage" doesn't exist; existing: broken, large, many-databases, standard, tuned`,
		},
		"an unusable config": {
			active(1, 0), "",
			[]string{"demo", "--config", "broken"},
			`error: ValkeyConfig "broken": valkey key "port" is set by the manager and can't be overridden: remove it`,
		},
		"no menu for a config": {
			active(1, 0), "valkeyconfigs",
			[]string{"demo", "--config", "large"},
			`error: what config "large" would change can't be told: valkeyconfigs can't be read: needs list valkeyconfigs.valkey.gomomento.com in the whole cluster`,
		},
		"no nodes": {
			active(1, 0), "valkeynodes",
			[]string{"demo"},
			"error: without its nodes there is no forecast for a cluster: valkeynodes can't be read: needs list valkeynodes.valkey.gomomento.com in namespace team-a",
		},
		"too many nodes":      {active(1, 0), "", []string{"demo", "--shards", "1000", "--replicas", "1"}, "error: a cluster of 2000 nodes is too large for a forecast; the most is 1500"},
		"a cluster that goes": {deleted, "", []string{"demo"}, "error: cluster demo in namespace team-a is being deleted: ownership takes away all that belongs to it"},
	} {
		c := denying(plugintest.Client(append(tt.fixture.Objects(), menu()...)...), tt.denied)
		out, errOut, code := plugintest.Run(t, build(c), false, tt.args...)
		if code != exit.Failed || out != "" || errOut != tt.want+"\n" {
			t.Errorf("%s: exit %d, %q, %q; want %q", name, code, out, errOut, tt.want)
		}
	}
}

// denying refuses to list a kind, given as its plural.
func denying(c client.WithWatch, plural string) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			if strings.ToLower(strings.TrimSuffix(gvk.Kind, "List"))+"s" == plural {
				return plugintest.Forbidden("list", plural, (&client.ListOptions{}).ApplyOptions(opts).Namespace)
			}
			return c.List(ctx, list, opts...)
		},
	})
}

func TestWhatCannotBeReadIsNoted(t *testing.T) {
	for denied, want := range map[string]string{
		"pods":          "Note: pods that are pending or dead are not told from others: pods can't be read: needs list pods in namespace team-a\n",
		"valkeyconfigs": "Note: whether nodes differ from their config is not known: valkeyconfigs can't be read: needs list valkeyconfigs.valkey.gomomento.com in the whole cluster\n",
		"events":        "Nothing was changed.\n",
	} {
		c := denying(plugintest.Client(append(active(3, 1).Objects(), menu()...)...), denied)
		out, errOut, code := plugintest.Run(t, build(c), false, "demo", "--shards", "4")
		if code != exit.OK || errOut != "" || !strings.HasSuffix(out, want) || !strings.Contains(out, "2 nodes created, 4096 slots moved") {
			t.Errorf("without %s: exit %d, %q, %s", denied, code, errOut, out)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"demo", "cache"},
		{"demo", "--shards", "0"},
		{"demo", "--shards", "1001"},
		{"demo", "--replicas", "6"},
		{"demo", "--replicas", "-1"},
		{"demo", "--config", ""},
		{"demo", "-o", "name"},
	} {
		out, errOut, code := plugintest.Run(t, build(plugintest.Client()), false, args...)
		if code != exit.Usage || out != "" || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "error: ") {
			t.Errorf("%v: exit %d, stdout %q, stderr %q; want 2 and one line on stderr", args, code, out, errOut)
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestColoursChangeNothingButColours(t *testing.T) {
	c := plugintest.Client(append(awaited("1a2b3c4d").Objects(), menu()...)...)
	coloured, _, _ := plugintest.Run(t, build(c), false, "demo", "--color=always")
	plain, _, _ := plugintest.Run(t, build(c), false, "demo")
	if strings.Contains(plain, "\x1b") || !escapes.MatchString(coloured) || escapes.ReplaceAllString(coloured, "") != plain {
		t.Errorf("coloured\n%s\nplain\n%s", coloured, plain)
	}
}
