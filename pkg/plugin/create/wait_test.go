package create

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// manager plays the manager's part for cluster demo: each step changes what the
// command watches.
type manager struct {
	t      *testing.T
	client client.Client
	f      *plugintest.Fixture
}

func newManager(t *testing.T, c client.Client) *manager {
	f := plugintest.Active("demo", 3, 1)
	for _, n := range f.Nodes {
		n.Spec.Lifecycle, n.Status.Ready = v1alpha1.LifecycleJoining, false
	}
	for _, p := range f.Pods {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	}
	return &manager{t: t, client: c, f: f}
}

func (m *manager) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
	// Let the command see it. The step is no multiple of a second, so that it
	// never comes at the moment of a tick.
	time.Sleep(1007 * time.Millisecond) // the bubble's clock
	synctest.Wait()
}

// status writes the status of the cluster that the command created.
func (m *manager) status(change func(*v1alpha1.ValkeyClusterStatus)) {
	m.t.Helper()
	var c v1alpha1.ValkeyCluster
	m.must(m.client.Get(m.t.Context(), client.ObjectKey{Namespace: plugintest.Namespace, Name: "demo"}, &c))
	change(&c.Status)
	m.must(m.client.Status().Update(m.t.Context(), &c))
}

func (m *manager) creating(message string) {
	m.t.Helper()
	m.status(func(s *v1alpha1.ValkeyClusterStatus) {
		m.f.Condition(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonReconciling, message)
		*s = *m.f.Cluster.Status.DeepCopy()
		s.State, s.Shards, s.ObservedGeneration = v1alpha1.StateCreating, nil, 1
	})
}

func (m *manager) createAll() {
	m.t.Helper()
	for i := range m.f.Nodes {
		m.must(m.client.Create(m.t.Context(), m.f.Nodes[i]))
		m.must(m.client.Create(m.t.Context(), m.f.Pods[i]))
	}
}

func (m *manager) running(i int) {
	m.t.Helper()
	m.f.Pods[i].Status.Phase = corev1.PodRunning
	m.must(m.client.Status().Update(m.t.Context(), m.f.Pods[i]))
}

func (m *manager) active() {
	m.t.Helper()
	m.status(func(s *v1alpha1.ValkeyClusterStatus) {
		m.f.Condition(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonComplete, "the cluster is as wished")
		*s = *m.f.Cluster.Status.DeepCopy()
		s.State, s.ObservedGeneration = v1alpha1.StateActive, 1
	})
}

// waiting is a create --wait in the background.
type waiting struct {
	*invocation
	stop context.CancelFunc
	done chan struct{}
}

func wait(t *testing.T, c client.WithWatch, terminal bool, args ...string) *waiting {
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiting{invocation: &invocation{client: c, terminal: terminal, clock: clock.RealClock{}}, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.run(ctx, demo(append([]string{"--wait"}, args...)...)...)
	}()
	synctest.Wait()
	return w
}

func TestWaitShowsProgressUntilActive(t *testing.T) {
	plugintest.Kubeconfig(t)
	for name, tt := range map[string]struct {
		terminal bool
		args     []string
	}{
		"wait.pipe":      {false, nil},
		"wait.terminal":  {true, nil},
		"wait.json.pipe": {false, []string{"-o", "json"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := plugintest.Client(menu()...)
				w := wait(t, c, tt.terminal, tt.args...)
				m := newManager(t, c)
				m.creating("create 6 nodes")
				m.createAll()
				for i := range m.f.Pods {
					m.running(i)
				}
				m.active()
				<-w.done
				if w.code != exit.OK {
					t.Errorf("exit %d with %s", w.code, w.errOut)
				}
				plugintest.Golden(t, name+".out.txt", w.out.String())
				plugintest.Golden(t, name+".err.txt", w.errOut.String())
				if strings.Contains(w.out.String()+w.errOut.String(), "\x1b") {
					t.Error("there is an escape code in it")
				}
			})
		})
	}
}

func TestWaitSaysWhyAPodDoesNotStart(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		c := plugintest.Client(menu()...)
		w := wait(t, c, false, "--timeout", "30s")
		m := newManager(t, c)
		m.creating("wait for pods")
		m.createAll()
		m.f.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"},
		}}}
		m.must(c.Status().Update(t.Context(), m.f.Pods[0]))
		<-w.done
		want := "error: cluster demo is not Active after 30s: Creating  pods 0/6  joined 0/6  slots 0/16384  replicas in sync 0/3  " +
			"demo-3fa2c is ImagePullBackOff: Back-off pulling image; it goes on being created, follow it with: kubectl valkey status demo -w -n team-a\n"
		if w.code != exit.TimedOut || w.errOut.String() != want {
			t.Errorf("exit %d with %q, want %d with %q", w.code, w.errOut, exit.TimedOut, want)
		}
		if !created(t, c) {
			t.Error("the cluster is gone")
		}
	})
}

func TestAnInterruptEndsOnlyTheWaiting(t *testing.T) {
	plugintest.Kubeconfig(t)
	for _, terminal := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := plugintest.Client(menu()...)
			w := wait(t, c, terminal)
			newManager(t, c).creating("create 6 nodes")
			w.stop()
			<-w.done
			want := "error: interrupted; cluster demo goes on being created, follow it with: kubectl valkey status demo -w -n team-a\n"
			if w.code != exit.Interrupted || w.errOut.String() != want {
				t.Errorf("exit %d with %q, want %d with %q", w.code, w.errOut, exit.Interrupted, want)
			}
			if terminal && !strings.HasSuffix(w.out.String(), "\r") {
				t.Errorf("the live line is still there: %q", w.out)
			}
			if !created(t, c) {
				t.Error("the cluster is gone")
			}
		})
	}
}

func TestWaitSaysThatNoManagerIsAtWork(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		c := interceptor.NewClient(plugintest.Client(menu()...), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				obj.SetCreationTimestamp(metav1.NewTime(time.Now())) // as the API server does
				return c.Create(ctx, obj, opts...)
			},
		})
		w := wait(t, c, false, "--timeout", "2m")
		<-w.done
		if n := strings.Count(w.out.String(), "no manager seems to be at work"); n != 1 || w.code != exit.TimedOut {
			t.Errorf("exit %d, said %d times, want 124 and once:\n%s", w.code, n, w.out)
		}
		if !strings.Contains(w.errOut.String(), "kubectl get deployment valkey-operator -n valkey-operator") {
			t.Errorf("stderr = %q, want how to check", w.errOut)
		}
	})
}

func TestAServerThatFallsSilentDoesNotOutlastTheTimeout(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		c := interceptor.NewClient(plugintest.Client(menu()...), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*corev1.EventList); ok {
					<-ctx.Done()
					return ctx.Err()
				}
				return c.List(ctx, list, opts...)
			},
		})
		w := wait(t, c, false, "--timeout", "30s")
		<-w.done
		if w.code != exit.TimedOut || !strings.HasPrefix(w.errOut.String(), "error: cluster demo is not Active after 30s: nothing is known yet;") {
			t.Errorf("exit %d with %q", w.code, w.errOut)
		}
	})
}

func TestWaitEndsWhenTheClusterIsDeleted(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		c := plugintest.Client(menu()...)
		w := wait(t, c, false)
		if err := c.Delete(t.Context(), newManager(t, c).f.Cluster); err != nil {
			t.Fatal(err)
		}
		<-w.done
		if want := "error: cluster demo in namespace team-a was deleted before it was Active\n"; w.code != exit.Failed || w.errOut.String() != want {
			t.Errorf("exit %d with %q, want %q", w.code, w.errOut, want)
		}
	})
}

func TestWhoMayCreateButNotWatchIsToldSo(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		inner := plugintest.Client(menu()...)
		c := interceptor.NewClient(inner, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*v1alpha1.ValkeyClusterList); ok {
					return plugintest.Forbidden("list", "valkeyclusters", plugintest.Namespace)
				}
				return c.List(ctx, list, opts...)
			},
		})
		w := wait(t, c, false)
		<-w.done
		want := "error: cluster demo was created, but can't be waited for: valkeyclusters can't be read: needs list valkeyclusters.valkey.gomomento.com in namespace team-a\n"
		if w.code != exit.Failed || w.errOut.String() != want {
			t.Errorf("exit %d with %q, want %q", w.code, w.errOut, want)
		}
	})
}
