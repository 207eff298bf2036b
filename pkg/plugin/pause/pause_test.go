package pause

import (
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest/asking"
)

func build(c client.WithWatch, which func(operation.Options) *Options) plugintest.Build {
	return asking.Build(c, func(o operation.Options) *cobra.Command { return which(o).command("long", "example", "short") })
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
		if got := asking.Cluster(t, c).Spec.Paused; got != tt.after {
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
