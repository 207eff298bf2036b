package acknowledge

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

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
	return asking.For(t, c, request.Acknowledge)
}

// awaiting lost the pod of the only node of shard 1.
func awaiting() *plugintest.Fixture {
	f := plugintest.Active("demo", 3, 0)
	f.Cluster.Status.Shards[1].Primary = ""
	f.Nodes[1].Status.Ready = false
	f.Pods = append(f.Pods[:1:1], f.Pods[2:]...)
	f.Condition(v1alpha1.ConditionDegraded, true, v1alpha1.ReasonCopiesAwaited,
		"node demo-40b3d may still hold the data of shard 1; bring it back, or accept the loss: kubectl valkey acknowledge demo -n team-a")
	return f
}

// replaced has given the slots of shard 2 to an empty node.
func replaced() *plugintest.Fixture {
	f := plugintest.Active("demo", 3, 0)
	f.Condition(v1alpha1.ConditionDataLoss, true, v1alpha1.ReasonDataLoss, "no copy of shard 2 is left: node demo-41c4e takes slots 10923-16383 without data")
	return f
}

func both() *plugintest.Fixture {
	f := awaiting()
	f.Cluster.Status.Conditions = append(f.Cluster.Status.Conditions, replaced().Cluster.Status.Conditions[4])
	return f
}

func TestWhatIsLostIsShownAndConfirmedByName(t *testing.T) {
	for golden, f := range map[string]*plugintest.Fixture{"awaiting": awaiting(), "replaced": replaced(), "both": both()} {
		for _, terminal := range []bool{true, false} {
			c := plugintest.Client(f.Objects()...)
			s := start(t, c, plugintest.Typing("demo\n"), terminal, "demo", "--wait=false")
			if code := s.Wait(); code != exit.OK || s.Out.String() != "valkeycluster.valkey.gomomento.com/demo acknowledgement requested\n" {
				t.Errorf("%s: exit %d with %q", golden, code, s.Out)
			}
			plugintest.Golden(t, golden+map[bool]string{true: ".terminal", false: ".pipe"}[terminal]+".txt", s.ErrOut.String())
			if got := asked(t, c); got != "61626364" {
				t.Errorf("%s: asked for %q", golden, got)
			}
		}
	}
}

func start(t *testing.T, c client.WithWatch, in io.Reader, terminal bool, args ...string) *plugintest.Session {
	t.Helper()
	plugintest.Kubeconfig(t)
	return plugintest.Start(t, build(c), in, terminal, args...)
}

func TestNothingIsAcknowledgedWithoutTheName(t *testing.T) {
	for typed, want := range map[string]string{
		"y\n":    `error: "y" is not the name of the cluster; nothing was acknowledged`,
		"\n":     `error: "" is not the name of the cluster; nothing was acknowledged`,
		"":       "error: read the confirmation: EOF; nothing was acknowledged",
		"Demo\n": `error: "Demo" is not the name of the cluster; nothing was acknowledged`,
	} {
		c := plugintest.Client(awaiting().Objects()...)
		s := start(t, c, plugintest.Typing(typed), true, "demo")
		if code := s.Wait(); code != exit.Failed || !strings.HasSuffix(s.ErrOut.String(), want+"\n") {
			t.Errorf("%q: exit %d with %q", typed, code, s.ErrOut)
		}
		if got := asked(t, c); got != "" {
			t.Errorf("%q: asked for %q", typed, got)
		}
	}
}

func TestAnInterruptedConfirmationAcknowledgesNothing(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		c := plugintest.Client(awaiting().Objects()...)
		s := plugintest.Start(t, build(c), plugintest.Keyboard{Reader: r}, true, "demo")
		synctest.Wait()
		s.Stop()
		if code := s.Wait(); code != exit.Interrupted || asked(t, c) != "" {
			t.Errorf("exit %d, asked for %q", code, asked(t, c))
		}
		_ = w.Close() // ends the read that was left behind
	})
}

func TestWithoutATerminalYesIsNeeded(t *testing.T) {
	c := plugintest.Client(awaiting().Objects()...)
	out, errOut, code := plugintest.Run(t, build(c), false, "demo")
	if code != exit.Usage || out != "" || !strings.Contains(errOut, "give --yes") || asked(t, c) != "" {
		t.Errorf("exit %d, %q, %q, asked for %q", code, out, errOut, asked(t, c))
	}
	_, errOut, code = plugintest.Run(t, build(c), false, "demo", "--yes", "--wait=false")
	if code != exit.OK || strings.Contains(errOut, "type the name") || asked(t, c) == "" {
		t.Errorf("with --yes: exit %d, %q, asked for %q", code, errOut, asked(t, c))
	}
}

func TestADryRunShowsTheLossAndAsksNobody(t *testing.T) {
	c := plugintest.Client(awaiting().Objects()...)
	out, errOut, code := plugintest.Run(t, build(c), false, "demo", "--dry-run=client")
	if code != exit.OK || !strings.Contains(errOut, "slots 5462-10922") || strings.Contains(errOut, "type the name") ||
		out != "valkeycluster.valkey.gomomento.com/demo acknowledgement requested (dry run)\n" || asked(t, c) != "" {
		t.Errorf("exit %d, %q, %q, asked for %q", code, out, errOut, asked(t, c))
	}
}

func TestAClusterThatLostNothingHasNothingToAcknowledge(t *testing.T) {
	c := plugintest.Client(plugintest.Active("demo", 3, 0).Objects()...)
	out, errOut, code := plugintest.Run(t, build(c), false, "demo", "--yes")
	if code != exit.OK || errOut != "" || out != "valkeycluster.valkey.gomomento.com/demo has nothing to acknowledge: no copy is waited for, and no loss is reported\n" || asked(t, c) != "" {
		t.Errorf("exit %d, %q, %q, asked for %q", code, out, errOut, asked(t, c))
	}
}
