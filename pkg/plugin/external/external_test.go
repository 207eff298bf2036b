package external

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func building(c client.WithWatch, kind func(operation.Options) *Options) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		o := operation.New(access, flags, streams, clock.RealClock{})
		o.Client = c
		options := kind(o)
		options.refresh = time.Millisecond
		return options.command()
	}
}

// served is a client behind which a manager answers every change of the spec, after
// it was looked at some times, and an API server counts generations.
type served struct {
	client.WithWatch
	t *testing.T
	// specs are those that were written.
	specs []v1alpha1.ExternalAccess
	// looks until the manager is done with a change.
	looks int
	// stuck keeps the manager from ever being done.
	stuck bool
	// meanwhile is done by somebody else after the first change.
	meanwhile func(*v1alpha1.ValkeyCluster)
}

func serve(t *testing.T, f *plugintest.Fixture) *served {
	s := &served{t: t}
	inner := plugintest.Client(f.Objects()...)
	s.WithWatch = interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			cluster, ok := obj.(*v1alpha1.ValkeyCluster)
			if !ok {
				t.Fatalf("%T is patched", obj)
			}
			cluster.Generation++
			if err := c.Patch(ctx, cluster, patch, opts...); err != nil || len(opts) > 0 {
				return err
			}
			s.specs, s.looks = append(s.specs, *cluster.Spec.ExternalAccess.DeepCopy()), 3
			if s.meanwhile != nil && len(s.specs) == 1 {
				other := cluster.DeepCopy()
				s.meanwhile(other)
				other.Generation++
				return c.Update(ctx, other)
			}
			return nil
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*v1alpha1.ValkeyCluster); ok && s.looks > 0 && !s.stuck {
				s.looks--
				if s.looks == 0 {
					s.manage(ctx, c, key)
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	return s
}

// manage does what the manager does, all at once.
func (s *served) manage(ctx context.Context, c client.WithWatch, key client.ObjectKey) {
	cluster := &v1alpha1.ValkeyCluster{}
	if err := c.Get(ctx, key, cluster); err != nil {
		s.t.Error(err)
		return
	}
	on := objects.ExternalEnabled(cluster)
	directed := on && cluster.Spec.ExternalAccess.PreferredEndpointType == v1alpha1.EndpointHostname
	cluster.Status.ObservedGeneration = cluster.Generation
	meta.RemoveStatusCondition(&cluster.Status.Conditions, v1alpha1.ConditionExternalAccessReady)
	if on {
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionExternalAccessReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonExternalReady, Message: "every node has a port outside",
		})
	}
	if err := c.Status().Update(ctx, cluster); err != nil {
		s.t.Error(err)
	}
	var nodes v1alpha1.ValkeyNodeList
	if err := c.List(ctx, &nodes); err != nil {
		s.t.Error(err)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		n.Spec.External = on
		if err := c.Update(ctx, n); err != nil {
			s.t.Error(err)
		}
		a := v1alpha1.Announcement{EndpointType: v1alpha1.EndpointIP}
		if directed {
			a.ClientPort = 31000
		}
		n.Status.Applied = &v1alpha1.Applied{Announcement: &a}
		if err := c.Status().Update(ctx, n); err != nil {
			s.t.Error(err)
		}
	}
}

// S1-66 to S1-68, S1-104: on and off, in two steps each, each seen before the next.
func TestAccessIsTurnedOnAndOffInTwoSteps(t *testing.T) {
	s := serve(t, plugintest.Active("demo", 2, 1))
	out, errOut, code := plugintest.Run(t, building(s, enabling), false, "demo", "--domain", "valkey.example.com", "--service-type", "LoadBalancer", "--yes")
	if code != exit.OK || !strings.Contains(out, "external access enabled") {
		t.Fatalf("exit %d with %q, %q", code, out, errOut)
	}
	want := []v1alpha1.ExternalAccess{
		{Enabled: true, ServiceType: "LoadBalancer", Domain: "valkey.example.com"},
		{Enabled: true, ServiceType: "LoadBalancer", Domain: "valkey.example.com", PreferredEndpointType: "hostname"},
	}
	wantSpecs(t, s.specs, want)
	for _, words := range []string{"Step 1 of 2 (to do): Give every node a port outside", "Step 2 of 2 (to do): Direct clients", "step 2: every node has it"} {
		if !strings.Contains(errOut, words) {
			t.Errorf("%q is missing in %q", words, errOut)
		}
	}

	out, errOut, code = plugintest.Run(t, building(s, enabling), false, "demo", "--domain", "valkey.example.com", "--yes")
	if code != exit.OK || !strings.Contains(out, "already") || len(s.specs) != 2 {
		t.Errorf("again: exit %d with %q, %q, %d changes", code, out, errOut, len(s.specs))
	}

	s.specs = nil
	out, errOut, code = plugintest.Run(t, building(s, disabling), false, "demo", "--yes")
	if code != exit.OK || !strings.Contains(out, "external access disabled") {
		t.Fatalf("exit %d with %q, %q", code, out, errOut)
	}
	want[1].PreferredEndpointType = "ip"
	off := want[1]
	off.Enabled = false
	wantSpecs(t, s.specs, []v1alpha1.ExternalAccess{want[1], off})
}

func wantSpecs(t *testing.T, got, want []v1alpha1.ExternalAccess) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("specs %+v, want %+v", got, want)
	}
	for i := range got {
		a, b := got[i], want[i]
		if a.Enabled != b.Enabled || a.ServiceType != b.ServiceType || a.Domain != b.Domain || a.PreferredEndpointType != b.PreferredEndpointType {
			t.Errorf("step %d wrote %+v, want %+v", i+1, a, b)
		}
	}
}

func TestEachStepIsAskedForAndCanBeRefusedAndTakenUpAgain(t *testing.T) {
	s := serve(t, plugintest.Active("demo", 1, 1))
	session := plugintest.Start(t, building(s, enabling), plugintest.Typing("y\nn\n"), true, "demo", "--domain", "example.com")
	if code := session.Wait(); code != exit.Failed || !strings.Contains(session.ErrOut.String(), "stopped before step 2; go on with") || len(s.specs) != 1 {
		t.Fatalf("exit %d after %d changes: %s", code, len(s.specs), session.ErrOut)
	}
	session = plugintest.Start(t, building(s, enabling), plugintest.Typing("y\n"), true, "demo", "--domain", "example.com")
	if code := session.Wait(); code != exit.OK || !strings.Contains(session.ErrOut.String(), "Step 1 of 2 (done)") || len(s.specs) != 2 {
		t.Fatalf("exit %d after %d changes: %s", code, len(s.specs), session.ErrOut)
	}
}

func TestAChangeBySomebodyElseStopsTheWalk(t *testing.T) {
	s := serve(t, plugintest.Active("demo", 1, 1))
	s.meanwhile = func(c *v1alpha1.ValkeyCluster) { c.Spec.Shards = 2 }
	_, errOut, code := plugintest.Run(t, building(s, enabling), false, "demo", "--domain", "example.com", "--yes")
	if code != exit.Failed || !strings.Contains(errOut, "somebody else changed the spec") || len(s.specs) != 1 {
		t.Errorf("exit %d after %d changes: %s", code, len(s.specs), errOut)
	}
}

func TestAStepThatTakesTooLongOrIsInterruptedCanBeTakenUp(t *testing.T) {
	s := serve(t, plugintest.Active("demo", 1, 1))
	s.stuck = true
	_, errOut, code := plugintest.Run(t, building(s, enabling), false, "demo", "--domain", "example.com", "--yes", "--timeout", "20ms")
	if code != exit.TimedOut || !strings.Contains(errOut, "the manager has not seen the change yet") {
		t.Errorf("exit %d with %s", code, errOut)
	}
	session := plugintest.Start(t, building(s, enabling), strings.NewReader(""), false, "demo", "--domain", "example.com", "--yes")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(session.ErrOut.String(), "step 1: ") {
		<-tick.C
	}
	session.Stop()
	if code := session.Wait(); code != exit.Interrupted || !strings.Contains(session.ErrOut.String(), "go on with") {
		t.Errorf("exit %d with %s", code, session.ErrOut)
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	for _, mode := range []string{"client", "server"} {
		s := serve(t, plugintest.Active("demo", 1, 1))
		out, errOut, code := plugintest.Run(t, building(s, enabling), false, "demo", "--domain", "example.com", "--dry-run", mode)
		if code != exit.OK || !strings.Contains(errOut, "Step 2 of 2") || !strings.Contains(out, "dry run") || len(s.specs) > 0 {
			t.Errorf("%s: exit %d with %q, %q", mode, code, out, errOut)
		}
	}
}

func TestWrongUsageOfExternal(t *testing.T) {
	for _, args := range [][]string{
		{"demo"}, {"demo", "--yes", "--service-type", "Node"}, {"demo", "--yes", "--gateway", "g"}, {"demo", "--yes", "--timeout", "0s"},
	} {
		if _, _, code := plugintest.Run(t, building(serve(t, plugintest.Active("demo", 1, 1)), enabling), false, args...); code != exit.Usage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
