package pause

import (
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func build(c client.WithWatch, which func(operation.Options) *Options) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		o := operation.New(access, flags, streams, clocktesting.NewFakeClock(plugintest.Now))
		o.Client = c
		return which(o).command("long", "example", "short")
	}
}

func paused(t *testing.T, c client.Client) bool {
	t.Helper()
	var cluster v1alpha1.ValkeyCluster
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: plugintest.Namespace, Name: "demo"}, &cluster); err != nil {
		t.Fatal(err)
	}
	return cluster.Spec.Paused
}

func TestPauseAndResume(t *testing.T) {
	for golden, tt := range map[string]struct {
		which  func(operation.Options) *Options
		before bool
		args   []string
		after  bool
	}{
		"pause":          {pausing, false, nil, true},
		"pause-again":    {pausing, true, nil, true},
		"pause.json":     {pausing, false, []string{"-o", "json"}, true},
		"pause-dry":      {pausing, false, []string{"--dry-run=server"}, false},
		"resume":         {resuming, true, nil, false},
		"resume-again":   {resuming, false, nil, false},
		"resume.yaml":    {resuming, true, []string{"-o", "yaml"}, false},
		"resume-dry":     {resuming, true, []string{"--dry-run=client"}, true},
		"resume-by-name": {resuming, true, []string{"-o", "name"}, false},
	} {
		f := plugintest.Active("demo", 1, 1)
		f.Cluster.Spec.Paused = tt.before
		c := plugintest.Client(f.Objects()...)
		out, errOut, code := plugintest.Run(t, build(c, tt.which), false, append(tt.args, "demo")...)
		if code != exit.OK || errOut != "" {
			t.Errorf("%s: exit %d with %q", golden, code, errOut)
		}
		plugintest.Golden(t, golden+".txt", out)
		if got := paused(t, c); got != tt.after {
			t.Errorf("%s: paused %v, want %v", golden, got, tt.after)
		}
	}
}

func TestAMissingClusterIsNamedWithThoseThatExist(t *testing.T) {
	c := plugintest.Client(plugintest.Active("demo", 1, 1).Objects()...)
	_, errOut, code := plugintest.Run(t, build(c, pausing), false, "dmeo")
	if want := "error: cluster \"dmeo\" not found in namespace team-a: it has demo\n"; code != exit.Failed || errOut != want {
		t.Errorf("exit %d with %q, want %q", code, errOut, want)
	}
}
