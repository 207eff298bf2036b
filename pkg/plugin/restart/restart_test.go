package restart

import (
	"context"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
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
	return asking.For(t, c, request.Restart)
}

func TestARestartCarriesTheTimeOfTheAPIServer(t *testing.T) {
	for name, tt := range map[string]struct {
		server *metav1.Time
		want   string
	}{
		"told by the server":     {&metav1.Time{Time: plugintest.Now.Add(-7 * time.Minute)}, "61626364 2026-06-01T11:53:00Z"},
		"not told by the server": {nil, "61626364 2026-06-01T12:00:00Z"},
	} {
		c := interceptor.NewClient(plugintest.Client(plugintest.Active("demo", 3, 1).Objects()...), interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				err := c.Patch(ctx, obj, patch, opts...)
				obj.SetManagedFields([]metav1.ManagedFieldsEntry{
					{Manager: "manager", Subresource: "status", Time: &metav1.Time{Time: plugintest.Now.Add(time.Hour)}},
					{Manager: kube.FieldManager, Time: tt.server},
				})
				return err
			},
		})
		out, errOut, code := plugintest.Run(t, build(c), false, "demo")
		if code != exit.OK || out != "valkeycluster.valkey.gomomento.com/demo restart requested\n" ||
			errOut != "note: 6 nodes are replaced one after the other, with a failover in each of 3 shards\n" {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, errOut)
		}
		if got := asked(t, c); got != tt.want {
			t.Errorf("%s: asked for %q, want %q", name, got, tt.want)
		}
	}
}

func TestARestartSaysWhatItDoesToASingleNode(t *testing.T) {
	c := plugintest.Client(plugintest.Active("demo", 1, 0).Objects()...)
	if _, errOut, code := plugintest.Run(t, build(c), false, "demo"); code != exit.OK || errOut != "note: the only node is replaced, with a failover to its successor\n" {
		t.Errorf("exit %d, %q", code, errOut)
	}
}

func TestARestartThatTheManagerWouldNotServeIsRefused(t *testing.T) {
	for name, change := range map[string]func(*plugintest.Fixture){
		"paused":   func(f *plugintest.Fixture) { f.Cluster.Spec.Paused = true },
		"creating": func(f *plugintest.Fixture) { f.Cluster.Status.State = v1alpha1.StateCreating },
		"restarted": func(f *plugintest.Fixture) {
			f.Cluster.Annotations = map[string]string{request.Key(request.Restart): "0 2026-06-01T11:59:00Z"}
		},
	} {
		f := plugintest.Active("demo", 3, 1)
		change(f)
		before := f.Cluster.Annotations[request.Key(request.Restart)]
		c := plugintest.Client(f.Objects()...)
		if out, errOut, code := plugintest.Run(t, build(c), false, "demo"); code != exit.Failed || out != "" || errOut == "" {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, errOut)
		}
		if got := asked(t, c); got != before {
			t.Errorf("%s: asked for %q all the same", name, got)
		}
	}
}
