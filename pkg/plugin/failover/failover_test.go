package failover

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest/asking"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

func build(c client.WithWatch) plugintest.Build {
	return asking.Build(c, func(o operation.Options) *cobra.Command { return (&Options{Options: o}).command() })
}

func asked(t *testing.T, c client.Client) string {
	t.Helper()
	return asking.For(t, c, request.Failover)
}

// active has shard 0 with primary demo-3fa2c and replicas demo-3fa3f, demo-3fa52.
func active() *plugintest.Fixture { return plugintest.Active("demo", 2, 2) }

func TestAFailoverIsAskedForAsTheManagerReadsIt(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"the best replica": {[]string{"--shard", "0"}, "61626364 0"},
		"a certain one":    {[]string{"--shard", "0", "--to", "demo-3fa52"}, "61626364 0 demo-3fa52"},
	} {
		c := plugintest.Client(active().Objects()...)
		out, errOut, code := plugintest.Run(t, build(c), false, append(tt.args, "demo", "--wait=false")...)
		if code != exit.OK || errOut != "" || out != "valkeycluster.valkey.gomomento.com/demo failover requested\n" {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, errOut)
		}
		if got := asked(t, c); got != tt.want {
			t.Errorf("%s: asked for %q, want %q", name, got, tt.want)
		}
	}
}

func TestAFailoverThatCannotBeIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*plugintest.Fixture)
		args   []string
		want   string
	}{
		"no such shard":      {nil, []string{"--shard", "7"}, "cluster demo has no shard 7; its shards: 0, 1"},
		"the primary itself": {nil, []string{"--shard", "0", "--to", "demo-3fa2c"}, "node demo-3fa2c is the primary of shard 0 already"},
		"a node of another":  {nil, []string{"--shard", "0", "--to", "demo-40b50"}, "node demo-40b50 is no replica of shard 0; its replicas: demo-3fa3f, demo-3fa52"},
		"a replica not in sync": {
			func(f *plugintest.Fixture) { f.Nodes[2].Status.Ready = false },
			[]string{"--shard", "0", "--to", "demo-3fa52"},
			"replica demo-3fa52 is not in sync; in sync: demo-3fa3f",
		},
		"no replica in sync": {
			func(f *plugintest.Fixture) { f.Nodes[1].Status.Ready, f.Nodes[2].Status.Ready = false, false },
			[]string{"--shard", "0"},
			"no replica of shard 0 is in sync",
		},
		"no replica": {
			func(f *plugintest.Fixture) { f.Cluster.Status.Shards[0].Replicas = nil },
			[]string{"--shard", "0"},
			"shard 0 has no replica that could take over",
		},
		"no primary": {
			func(f *plugintest.Fixture) { f.Cluster.Status.Shards[0].Primary = "" },
			[]string{"--shard", "0"},
			"shard 0 has no primary at the moment",
		},
		"a paused cluster": {
			func(f *plugintest.Fixture) { f.Cluster.Spec.Paused = true },
			[]string{"--shard", "0"},
			"resume it first with kubectl valkey resume demo -n team-a",
		},
		"an Invalid cluster": {
			func(f *plugintest.Fixture) {
				f.Cluster.Status.State, f.Cluster.Status.Message = v1alpha1.StateInvalid, "Secret demo-tls doesn't exist"
			},
			[]string{"--shard", "0"},
			"is Invalid, so the manager changes nothing: Secret demo-tls doesn't exist",
		},
		"a cluster that is created": {
			func(f *plugintest.Fixture) { f.Cluster.Status.State = v1alpha1.StateCreating },
			[]string{"--shard", "0"},
			"cluster demo is still being created",
		},
		"a failover under way": {
			func(f *plugintest.Fixture) {
				f.Cluster.Annotations = map[string]string{request.Key(request.Failover): "00000000 1"}
				f.Cluster.Status.Requests = []v1alpha1.RequestStatus{{Verb: "failover", ID: "00000000", State: "Running", Message: "handing over from demo-40b3d"}}
			},
			[]string{"--shard", "0"},
			"the failover of cluster demo is asked for already (request 00000000 1): handing over from demo-40b3d; follow it with kubectl valkey status demo -w -n team-a," +
				" or take it back with kubectl annotate valkeycluster demo valkey.gomomento.com/request-failover- -n team-a",
		},
	} {
		f := active()
		if tt.change != nil {
			tt.change(f)
		}
		before := f.Cluster.Annotations[request.Key(request.Failover)]
		c := plugintest.Client(f.Objects()...)
		out, errOut, code := plugintest.Run(t, build(c), false, append(tt.args, "demo")...)
		if code != exit.Failed || out != "" || !strings.Contains(errOut, tt.want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q; want %q", name, code, out, errOut, tt.want)
		}
		if got := asked(t, c); got != before {
			t.Errorf("%s: asked for %q all the same", name, got)
		}
	}
}

func TestAFailoverOfABusyClusterSaysWhatItWaitsFor(t *testing.T) {
	f := active()
	f.Condition(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonWaiting, "replica demo-3fa52 is copying the data of shard 0")
	_, errOut, code := plugintest.Run(t, build(plugintest.Client(f.Objects()...)), false, "demo", "--shard", "1", "--wait=false")
	if want := "note: the failover waits until the manager is done with: replica demo-3fa52 is copying the data of shard 0\n"; code != exit.OK || errOut != want {
		t.Errorf("exit %d, %q, want %q", code, errOut, want)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"--shard", "0"},
		{"demo"},
		{"demo", "cache", "--shard", "0"},
		{"demo", "--shard", "-1"},
		{"demo", "--shard", "0", "-o", "wide"},
		{"demo", "--shard", "0", "--dry-run=maybe"},
		{"demo", "--shard", "0", "--wait=false", "--timeout", "1m"},
		{"demo", "--shard", "0", "--timeout", "0s"},
		{"demo", "--shard", "0", "--wait", "--dry-run=client"},
	} {
		c := plugintest.Client(active().Objects()...)
		out, errOut, code := plugintest.Run(t, build(c), false, args...)
		if code != exit.Usage || out != "" || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "error: ") || asked(t, c) != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q; want 2 and one line on stderr", args, code, out, errOut)
		}
	}
}
