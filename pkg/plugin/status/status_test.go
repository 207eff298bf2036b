package status

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// run executes the command as the root command would, in namespace team-a, and
// returns what was written and the exit code.
func run(t *testing.T, c client.WithWatch, terminal bool, args ...string) (out, errOut string, code int) {
	t.Helper()
	plugintest.Kubeconfig(t)
	streams, o, e := plugintest.Streams(strings.NewReader(""), terminal)
	access, flags := kube.NewAccess(), output.NewFlags(func(string) string { return "" })
	cmd := (&Options{access: access, flags: flags, streams: streams, clock: clocktesting.NewFakeClock(plugintest.Now), client: c}).command()
	access.AddFlags(cmd.PersistentFlags())
	flags.AddFlags(cmd)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--namespace", plugintest.Namespace))
	code = exit.Report(e, cmd.ExecuteContext(t.Context()))
	return o.String(), e.String(), code
}

// denying refuses to list kinds, given as plurals.
func denying(c client.WithWatch, resources ...string) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			resource := strings.ToLower(strings.TrimSuffix(gvk.Kind, "List")) + "s"
			for _, r := range resources {
				if r == resource {
					return plugintest.Forbidden("list", resource, plugintest.Namespace)
				}
			}
			return c.List(ctx, list, opts...)
		},
	})
}

func degraded() *plugintest.Fixture {
	f := plugintest.Active("demo", 3, 1)
	f.Cluster.Status.Ready, f.Cluster.Status.ReadyShards = "4/6", 1
	message := f.Nodes[1].Name + ": its pod is pending: Unschedulable; " + f.Nodes[4].Name + ": it does not answer: dial tcp 10.0.1.14:6379: i/o timeout"
	f.Condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonNodesNotReady, message)
	f.Condition(v1alpha1.ConditionDegraded, true, v1alpha1.ReasonNodeUnreachable, message)
	f.Condition(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonWaiting, "waiting for the pod of "+f.Nodes[1].Name)
	f.Nodes[1].Status = v1alpha1.ValkeyNodeStatus{}
	f.Nodes[1].Spec.Lifecycle = v1alpha1.LifecycleJoining
	f.Pods[1].Spec.NodeName = ""
	delete(f.Pods[1].Labels, corev1.LabelTopologyZone)
	f.Pods[1].Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory."},
	}}
	f.Nodes[4].Status.Ready = false // P-10
	f.Nodes[5].Status.LagBytes = 16 << 20
	f.Cluster.Status.Shards[0].Replicas = nil
	f.Event("ValkeyCluster", "demo", "Normal", "Active", "cluster is Active: 3 shards, 6/6 nodes in sync", 4*time.Minute)
	f.Event("ValkeyCluster", "demo", "Warning", "NodeUnreachable", message, 50*time.Second)
	f.Event("Pod", f.Nodes[1].Name, "Normal", "Scheduled", "not shown", time.Minute)
	f.Event("Pod", f.Nodes[1].Name, "Warning", "FailedScheduling", "0/3 nodes are available: 3 Insufficient memory.", 40*time.Second)
	f.Events[3].Count = 7
	return f
}

func withTLS() *plugintest.Fixture {
	f := plugintest.Active("demo", 1, 1)
	f.Cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "demo-tls"}
	f.Cluster.Spec.Paused = true
	f.Cluster.Spec.ACL = []v1alpha1.ACLBinding{{Username: "ops"}, {Username: "app"}}
	f.Cluster.Status.TLS = &v1alpha1.TLSStatus{
		Fingerprint: strings.Repeat("ab", 32), NotAfter: &metav1.Time{Time: plugintest.Now.Add(9*24*time.Hour + time.Hour)},
		Nodes: f.Cluster.Status.Nodes,
	}
	f.Condition(v1alpha1.ConditionTLSReady, true, v1alpha1.ReasonTLSServed, "every node serves the certificate")
	f.Condition(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonPaused, "the cluster is paused: nothing is changed until spec.paused is false")
	return f
}

func unseen() *plugintest.Fixture {
	f := plugintest.Active("demo", 3, 1)
	f.Cluster.Status = v1alpha1.ValkeyClusterStatus{}
	f.Nodes, f.Pods, f.ACL = nil, nil, nil
	return f
}

// lost has given up one shard, waits for the copies of another, and was asked for
// this and that.
func lost() *plugintest.Fixture {
	f := plugintest.Active("demo", 3, 0)
	f.Cluster.Status.Ready, f.Cluster.Status.ReadyShards = "2/3", 2
	f.Cluster.Status.Shards[1].Primary = ""
	f.Pods = slices.Delete(f.Pods, 1, 2)
	awaited := "node " + f.Nodes[1].Name + " may still hold the data of shard 1"
	f.Condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonSlotsUncovered, "slots 5462-10922 are not served by any node that answers")
	f.Condition(v1alpha1.ConditionDegraded, true, v1alpha1.ReasonCopiesAwaited, awaited+"; bring it back, or accept the loss: kubectl valkey acknowledge demo -n team-a")
	f.Condition(v1alpha1.ConditionDataLoss, true, v1alpha1.ReasonDataLoss, "no copy of shard 2 is left: node "+f.Nodes[2].Name+" takes slots 10923-16383 without data")
	f.Condition(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonWaiting, "slots 5462-10922 have no owner that is alive")
	f.Cluster.Annotations = map[string]string{
		v1alpha1.AnnotationRequestPrefix + "failover": "1a2b3c4d 0", v1alpha1.AnnotationRequestPrefix + "restart": "0badcafe 2026-06-01T11:59:00Z",
		v1alpha1.AnnotationRequestPrefix + "acknowledge": "5e6f7a8b",
	}
	f.Cluster.Status.Requests = []v1alpha1.RequestStatus{
		{Verb: "acknowledge", ID: "00000000", State: "Done"},
		{Verb: "failover", ID: "1a2b3c4d", State: "Failed", Message: "shard 0 has no replica in sync"},
		{Verb: "restart", ID: "0badcafe", State: "Running", Message: "2 nodes are still to be replaced"},
	}
	return f
}

func TestStatusOfOneCluster(t *testing.T) {
	menu := plugintest.Menu()
	tests := []struct {
		golden  string
		objects []client.Object
		denied  []string
		args    []string
		code    int
		err     string
	}{
		{golden: "active", objects: plugintest.Active("demo", 3, 1).Objects()},
		{golden: "active-wide", objects: append(plugintest.Active("demo", 1, 1).Objects(), menu...), args: []string{"-o", "wide"}},
		{golden: "tls-paused", objects: withTLS().Objects()},
		{
			golden: "degraded", objects: degraded().Objects(), code: exit.Failed,
			err: "error: cluster demo in namespace team-a is not healthy: NodesNotReady: demo-3fa3f: its pod is pending: Unschedulable; demo-41c4e: it does not answer: dial tcp 10.0.1.14:6379: i/o timeout\n",
		},
		{
			golden: "unseen", objects: unseen().Objects(), code: exit.Failed,
			err: "error: cluster demo in namespace team-a is not healthy: ManagerSilent: no manager seems to be at work: for over 30s none has looked at generation 1; check with: kubectl get deployment valkey-operator -n valkey-operator\n",
		},
		{
			golden: "lost", objects: lost().Objects(), code: exit.Failed,
			err: "error: cluster demo in namespace team-a is not healthy: SlotsUncovered: slots 5462-10922 are not served by any node that answers\n",
		},
		{golden: "custom-resources-only", objects: plugintest.Active("demo", 1, 1).Objects(), denied: []string{"pods", "events"}},
	}
	for _, tt := range tests {
		for _, terminal := range []bool{true, false} {
			name := tt.golden + map[bool]string{true: ".terminal", false: ".pipe"}[terminal]
			t.Run(name, func(t *testing.T) {
				out, errOut, code := run(t, denying(plugintest.Client(tt.objects...), tt.denied...), terminal, append([]string{"demo"}, tt.args...)...)
				if code != tt.code || errOut != tt.err {
					t.Errorf("exit %d with %q, want %d with %q", code, errOut, tt.code, tt.err)
				}
				plugintest.Golden(t, name+".txt", out)
			})
		}
	}
}

func TestStatusForPrograms(t *testing.T) {
	objects := append(degraded().Objects(), plugintest.Menu()...)
	for _, format := range []string{output.JSON, output.YAML} {
		out, _, code := run(t, plugintest.Client(objects...), false, "demo", "-o", format)
		if code != exit.Failed {
			t.Errorf("%s: exit %d, want %d", format, code, exit.Failed)
		}
		plugintest.Golden(t, "degraded."+format, out)
	}
}

func TestRequestsAreToldWithTheirAnswers(t *testing.T) {
	f := lost()
	want := []Request{
		{Verb: "acknowledge", ID: "5e6f7a8b", State: "Unanswered"}, // the answer is to a former one
		{Verb: "failover", ID: "1a2b3c4d", State: "Failed", Message: "shard 0 has no replica in sync"},
		{Verb: "restart", ID: "0badcafe", State: "Running", Message: "2 nodes are still to be replaced"},
	}
	if diff := cmp.Diff(want, requests(f.Cluster)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	f.Cluster.Annotations = nil // all are taken back
	want = []Request{
		{Verb: "acknowledge", ID: "00000000", State: "Done"},
		{Verb: "failover", ID: "1a2b3c4d", State: "Failed", Message: "shard 0 has no replica in sync"},
	}
	if diff := cmp.Diff(want, requests(f.Cluster)); diff != "" {
		t.Errorf("after they were taken back (-want +got):\n%s", diff)
	}
}

func listed() []client.Object {
	other := plugintest.Active("cache", 1, 0)
	other.Cluster.Namespace = "team-b"
	missing := plugintest.Active("api", 3, 2)
	missing.Cluster.Status.State = v1alpha1.StateCreating
	missing.Cluster.Status.Ready = "0/9"
	missing.Condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonConfigNotFound, "ValkeyConfig \"x\" doesn't exist")
	return []client.Object{plugintest.Active("demo", 3, 1).Cluster, other.Cluster, missing.Cluster, withTLSNamed("secure").Cluster}
}

func withTLSNamed(name string) *plugintest.Fixture {
	f := withTLS()
	f.Cluster.Name = name
	return f
}

func TestListOfClusters(t *testing.T) {
	for golden, args := range map[string][]string{
		"list":            nil,
		"list-all":        {"-A"},
		"list-wide":       {"-o", "wide"},
		"list-no-headers": {"--no-headers"},
	} {
		out, errOut, code := run(t, plugintest.Client(listed()...), true, args...)
		if code != exit.OK || errOut != "" {
			t.Errorf("%s: exit %d with %q, want 0 with nothing", golden, code, errOut)
		}
		plugintest.Golden(t, golden+".terminal.txt", out)
	}
	out, _, _ := run(t, plugintest.Client(listed()...), false, "-o", "json")
	plugintest.Golden(t, "list.json", out)
}

func TestAnEmptyListIsNoError(t *testing.T) {
	out, errOut, code := run(t, plugintest.Client(), false)
	if out != "" || errOut != "No clusters found in namespace team-a.\n" || code != exit.OK {
		t.Errorf("got %q, %q, exit %d", out, errOut, code)
	}
	out, errOut, code = run(t, plugintest.Client(), false, "-A", "-o", "json")
	if out != "{\n    \"clusters\": []\n}\n" || errOut != "" || code != exit.OK {
		t.Errorf("as JSON: %q, %q, exit %d", out, errOut, code)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"demo", "-A"}, {"demo", "cache"}, {"demo", "--no-headers"}, {"-o", "xml"}, {"-o", "name"},
	} {
		out, errOut, code := run(t, plugintest.Client(listed()...), false, args...)
		if code != exit.Usage || out != "" || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "error: ") {
			t.Errorf("%v: exit %d, stdout %q, stderr %q; want 2 and one line on stderr", args, code, out, errOut)
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// P-07
func TestColoursChangeNothingButColours(t *testing.T) {
	for name, f := range map[string]*plugintest.Fixture{"active": plugintest.Active("demo", 3, 1), "degraded": degraded(), "tls": withTLS(), "unseen": unseen()} {
		coloured, _, _ := run(t, plugintest.Client(f.Objects()...), false, "demo", "--color=always")
		plain, errOut, _ := run(t, plugintest.Client(f.Objects()...), false, "demo")
		if strings.Contains(plain+errOut, "\x1b") {
			t.Errorf("%s: a pipe got escape codes", name)
		}
		if !escapes.MatchString(coloured) {
			t.Errorf("%s: --color=always has no colours", name)
		}
		if escapes.ReplaceAllString(coloured, "") != plain {
			t.Errorf("%s: without escape codes the coloured text differs from the plain one", name)
		}
	}
}

// P-10: the cluster's own status says that all is well, but nobody looks after it.
func TestAManagerThatIsGoneIsToldOf(t *testing.T) {
	r := newReport(&inspect.Snapshot{Cluster: plugintest.Active("demo", 1, 0).Cluster, ManagerSilent: "no manager seems to be at work"}, plugintest.Now)
	text, err := r.text(renderer{now: plugintest.Now})
	if err != nil {
		t.Fatal(err)
	}
	if want := "Manager:   no manager seems to be at work\n"; !strings.Contains(text, want) {
		t.Errorf("%q does not stand in\n%s", want, text)
	}
}
