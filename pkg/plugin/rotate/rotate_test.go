package rotate

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
	return asking.For(t, c, request.RotateCredentials)
}

func TestARotationIsAskedFor(t *testing.T) {
	c := plugintest.Client(plugintest.Active("demo", 3, 1).Objects()...)
	out, errOut, code := plugintest.Run(t, build(c), false, "demo", "--wait=false")
	if code != exit.OK || out != "valkeycluster.valkey.gomomento.com/demo credential rotation requested\n" || errOut != "" {
		t.Errorf("exit %d, %q, %q", code, out, errOut)
	}
	if got := asked(t, c); got != "61626364" {
		t.Errorf("asked for %q", got)
	}
	// A second one would take the place of the first.
	if _, errOut, code := plugintest.Run(t, build(c), false, "demo"); code != exit.Failed || !strings.Contains(errOut, "is asked for already") {
		t.Errorf("exit %d, %q", code, errOut)
	}
}

func TestTheEndOfARotationIsTheManagersAnswer(t *testing.T) {
	for state, want := range map[string]int{request.Done: exit.OK, request.Failed: exit.Failed} {
		f := plugintest.Active("demo", 3, 1)
		f.Cluster.Status.Requests = []v1alpha1.RequestStatus{{Verb: request.RotateCredentials, ID: "61626364", State: state, Message: "6 of 6 nodes use the new passwords"}}
		out, errOut, code := plugintest.Run(t, build(plugintest.Client(f.Objects()...)), false, "demo")
		if code != want || !strings.Contains(out+errOut, "6 of 6 nodes use the new passwords") {
			t.Errorf("%s: exit %d, %q, %q", state, code, out, errOut)
		}
	}
}

func TestAPausedClusterIsRefused(t *testing.T) {
	f := plugintest.Active("demo", 3, 1)
	f.Cluster.Spec.Paused = true
	c := plugintest.Client(f.Objects()...)
	if _, errOut, code := plugintest.Run(t, build(c), false, "demo"); code != exit.Failed || !strings.Contains(errOut, "is paused") || asked(t, c) != "" {
		t.Errorf("exit %d, %q, asked for %q", code, errOut, asked(t, c))
	}
}

func TestADryRunAsksForNothing(t *testing.T) {
	c := plugintest.Client(plugintest.Active("demo", 3, 1).Objects()...)
	if _, _, code := plugintest.Run(t, build(c), false, "demo", "--dry-run=client"); code != exit.OK || asked(t, c) != "" {
		t.Errorf("exit %d, asked for %q", code, asked(t, c))
	}
}
