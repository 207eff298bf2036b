// Package asking runs commands that ask the manager for something, in tests.
package asking

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

// Build makes a command that talks to a client, whose clock stands still and whose
// requests all have the ID 61626364.
func Build(c client.WithWatch, command func(operation.Options) *cobra.Command) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		o := operation.New(access, flags, streams, clocktesting.NewFakeClock(plugintest.Now))
		o.Client, o.Random = c, strings.NewReader("abcd")
		return command(o)
	}
}

// Cluster reads the cluster demo.
func Cluster(t *testing.T, c client.Client) *v1alpha1.ValkeyCluster {
	t.Helper()
	cluster := &v1alpha1.ValkeyCluster{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: plugintest.Namespace, Name: "demo"}, cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// For returns what the cluster demo asks for with a verb, "" if nothing.
func For(t *testing.T, c client.Client, verb string) string {
	t.Helper()
	return Cluster(t, c).Annotations[request.Key(verb)]
}
