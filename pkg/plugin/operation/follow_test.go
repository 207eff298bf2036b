package operation_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

const timeout = time.Minute

// build makes a command that asks for a failover of shard 1 and waits.
func build(c client.WithWatch) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		o := operation.New(access, flags, streams, clock.RealClock{})
		o.Client, o.Random = c, strings.NewReader("abcd")
		cmd := o.Command(&cobra.Command{Use: "ask NAME"}, nil, func(ctx context.Context) error {
			s, err := o.Look(ctx)
			if err != nil {
				return err
			}
			id, err := o.NewID()
			if err != nil {
				return err
			}
			return o.Ask(ctx, s.Cluster, request.NewFailover(id, 1, ""))
		})
		o.AddWaitFlags(cmd.Flags(), true, timeout)
		return cmd
	}
}

// manager answers as the manager does.
type manager struct {
	t *testing.T
	c client.Client
}

func (m manager) cluster() *v1alpha1.ValkeyCluster {
	m.t.Helper()
	var c v1alpha1.ValkeyCluster
	if err := m.c.Get(m.t.Context(), client.ObjectKey{Namespace: plugintest.Namespace, Name: "demo"}, &c); err != nil {
		m.t.Fatal(err)
	}
	return &c
}

func (m manager) says(state, message, doing string) {
	m.t.Helper()
	c := m.cluster()
	r := request.Of(c)[0]
	c.Status.Requests = []v1alpha1.RequestStatus{{Verb: r.Verb, ID: r.ID, State: state, Message: message}}
	f := plugintest.Fixture{Cluster: c}
	f.Condition(v1alpha1.ConditionProgressing, doing != "", v1alpha1.ReasonComplete, doing)
	if err := m.c.Status().Update(m.t.Context(), c); err != nil {
		m.t.Fatal(err)
	}
	synctest.Wait()
}

func (m manager) annotate(value string) {
	m.t.Helper()
	c := m.cluster()
	c.Annotations[request.Key(request.Failover)] = value
	if value == "" {
		c.Annotations = nil
	}
	if err := m.c.Update(m.t.Context(), c); err != nil {
		m.t.Fatal(err)
	}
	synctest.Wait()
}

// second lets a second pass.
func second() {
	time.Sleep(time.Second) // the bubble's clock
	synctest.Wait()
}

// waiting runs the command in a bubble; act does what happens meanwhile.
func waiting(t *testing.T, terminal bool, args []string, act func(*testing.T, manager, *plugintest.Session)) (out, errOut string, code int) {
	t.Helper()
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		c := plugintest.Client(plugintest.Active("demo", 2, 1).Objects()...)
		s := plugintest.Start(t, build(c), strings.NewReader(""), terminal, append(args, "demo")...)
		synctest.Wait()
		act(t, manager{t, c}, s)
		code = s.Wait()
		out, errOut = s.Out.String(), s.ErrOut.String()
	})
	return out, errOut, code
}

func TestAWaitShowsHowARequestProceeds(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		for _, terminal := range []bool{true, false} {
			args := []string{"-o", format}
			if format == "text" {
				args = nil
			}
			out, errOut, code := waiting(t, terminal, args, func(_ *testing.T, m manager, _ *plugintest.Session) {
				second()
				m.says(request.Running, "waiting: replica demo-40b50 is copying the data of shard 1", "replica demo-40b50 is copying the data of shard 1")
				second()
				m.says(request.Running, "handing over from demo-40b3d", "a failover was asked for: replica demo-40b50 takes over shard 1 from demo-40b3d")
				second()
				m.says(request.Done, "demo-40b50 took over shard 1 from demo-40b3d", "")
			})
			if code != exit.OK {
				t.Errorf("exit %d with %q", code, errOut)
			}
			name := "wait." + format + map[bool]string{true: ".terminal", false: ".pipe"}[terminal]
			plugintest.Golden(t, name+".out.txt", out)
			plugintest.Golden(t, name+".err.txt", errOut)
		}
	}
}

func TestAWaitEndsWellOrSaysWhy(t *testing.T) {
	const follow = "follow it with kubectl valkey status demo -w -n team-a, or take it back with kubectl annotate valkeycluster demo valkey.gomomento.com/request-failover- -n team-a\n"
	for name, tt := range map[string]struct {
		act  func(*testing.T, manager, *plugintest.Session)
		code int
		want string
	}{
		"the manager refuses": {
			func(_ *testing.T, m manager, _ *plugintest.Session) {
				m.says(request.Failed, "shard 1 has no replica in sync", "")
			},
			exit.Failed, "error: the failover of cluster demo failed: shard 1 has no replica in sync\n",
		},
		"nobody answers": {
			func(*testing.T, manager, *plugintest.Session) {},
			exit.TimedOut, "error: the failover of cluster demo is not done after 1m0s: no manager seems to be at work: it has not answered for over 30s; check with: kubectl get deployment valkey-operator -n valkey-operator; the request stays: " + follow,
		},
		"it takes too long": {
			func(_ *testing.T, m manager, _ *plugintest.Session) {
				m.says(request.Running, "waiting: pod demo-40b50 is pending", "pod demo-40b50 is pending")
			},
			exit.TimedOut, "error: the failover of cluster demo is not done after 1m0s: waiting: pod demo-40b50 is pending; the request stays: " + follow,
		},
		"an interrupt": {
			func(_ *testing.T, _ manager, s *plugintest.Session) { s.Stop() },
			exit.Interrupted, "error: interrupted; the request stays: " + follow,
		},
		"another request": {
			func(_ *testing.T, m manager, _ *plugintest.Session) { m.annotate("ffffffff 0") },
			exit.Failed, "error: somebody else asked for another failover meanwhile (request ffffffff 0), which took the place of this one\n",
		},
		"it is taken back": {
			func(_ *testing.T, m manager, _ *plugintest.Session) { m.annotate("") },
			exit.Failed, "error: the request was taken back before the manager answered it\n",
		},
		"the cluster is deleted": {
			func(t *testing.T, m manager, _ *plugintest.Session) {
				if err := m.c.Delete(t.Context(), m.cluster()); err != nil {
					t.Fatal(err)
				}
			},
			exit.Failed, "error: cluster demo in namespace team-a was deleted before the failover was done\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, errOut, code := waiting(t, false, nil, tt.act)
			if code != tt.code || errOut != tt.want {
				t.Errorf("exit %d with %q, want %d with %q", code, errOut, tt.code, tt.want)
			}
		})
	}
}

func TestAnAnswerToAFormerRequestIsNone(t *testing.T) {
	_, errOut, code := waiting(t, false, []string{"--timeout", "5s"}, func(t *testing.T, m manager, _ *plugintest.Session) {
		c := m.cluster()
		c.Status.Requests = []v1alpha1.RequestStatus{{Verb: request.Failover, ID: "00000000", State: request.Done}}
		if err := m.c.Status().Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	})
	if code != exit.TimedOut || !strings.Contains(errOut, "the manager has not answered yet") {
		t.Errorf("exit %d with %q", code, errOut)
	}
}

func TestAWaitOutlastsAServerThatIsAway(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int32
		c := interceptor.NewClient(plugintest.Client(plugintest.Active("demo", 2, 1).Objects()...), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*v1alpha1.ValkeyClusterList); ok && lists.Add(1) < 4 {
					return errors.New("connection refused")
				}
				return c.List(ctx, list, opts...)
			},
		})
		s := plugintest.Start(t, build(c), strings.NewReader(""), false, "demo")
		time.Sleep(20 * time.Second) // the bubble's clock
		manager{t, c}.says(request.Done, "", "")
		if code := s.Wait(); code != exit.OK || !strings.Contains(s.Out.String(), "connection refused") {
			t.Errorf("exit %d with %q, %q", code, s.Out, s.ErrOut)
		}
	})
}

func TestWhatMayNotBeWrittenNamesThePermission(t *testing.T) {
	c := interceptor.NewClient(plugintest.Client(plugintest.Active("demo", 2, 1).Objects()...), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return plugintest.Forbidden("patch", "valkeyclusters", plugintest.Namespace)
		},
	})
	_, errOut, code := plugintest.Run(t, build(c), false, "demo")
	if want := "error: valkeyclusters can't be changed: needs patch valkeyclusters.valkey.gomomento.com in namespace team-a\n"; code != exit.Failed || errOut != want {
		t.Errorf("exit %d with %q", code, errOut)
	}
}

func TestDryRunsWriteNothing(t *testing.T) {
	for _, mode := range []string{operation.DryRunClient, operation.DryRunServer} {
		var patches []bool
		c := interceptor.NewClient(plugintest.Client(plugintest.Active("demo", 2, 1).Objects()...), interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				patches = append(patches, len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0)
				return c.Patch(ctx, obj, patch, opts...)
			},
		})
		for _, format := range []string{"", "json", "name"} {
			out, errOut, code := plugintest.Run(t, build(c), false, "demo", "--dry-run="+mode, "-o", format)
			if code != exit.OK || errOut != "" {
				t.Errorf("%s %s: exit %d with %q", mode, format, code, errOut)
			}
			plugintest.Golden(t, "dry-run-"+mode+"."+orText(format)+".txt", out)
		}
		if r := request.Of(manager{t, c}.cluster()); len(r) != 0 {
			t.Errorf("%s: asked for %v all the same", mode, r)
		}
		for _, dry := range patches {
			if !dry || mode == operation.DryRunClient {
				t.Errorf("%s: patches %v", mode, patches)
			}
		}
	}
}

func orText(format string) string {
	if format == "" {
		return "text"
	}
	return format
}
