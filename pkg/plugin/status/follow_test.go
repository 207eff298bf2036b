package status

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// watching is a "status -w" that runs in the background of a synctest bubble.
type watching struct {
	out, errOut *plugintest.Stream
	stop        context.CancelFunc
	done        chan int
}

func watchStatus(t *testing.T, c client.WithWatch, terminal bool, args ...string) *watching {
	t.Helper()
	streams, o, e := plugintest.Streams(strings.NewReader(""), terminal)
	ctx, cancel := context.WithCancel(t.Context())
	w := &watching{out: o, errOut: e, stop: cancel, done: make(chan int, 1)}
	access, flags := kube.NewAccess(), output.NewFlags(func(string) string { return "" })
	cmd := (&Options{access: access, flags: flags, streams: streams, clock: clock.RealClock{}, client: c}).command()
	access.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "-w", "--namespace", plugintest.Namespace))
	go func() { w.done <- exit.Report(e, cmd.ExecuteContext(ctx)) }()
	return w
}

// settled lets everything happen that a change leads to.
func settled() {
	time.Sleep(2 * settle) // the bubble's clock
	synctest.Wait()
}

func setReady(t *testing.T, c client.Client, ready string) {
	t.Helper()
	var cluster v1alpha1.ValkeyCluster
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: plugintest.Namespace, Name: "demo"}, &cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Status.Ready = ready
	if err := c.Status().Update(t.Context(), &cluster); err != nil {
		t.Fatal(err)
	}
}

func TestWatchInAPipeAppendsWhatIsNew(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		c := plugintest.Client(plugintest.Active("demo", 1, 1).Objects()...)
		w := watchStatus(t, c, false, "demo")
		settled()
		if n := strings.Count(w.out.String(), "--- "); n != 1 {
			t.Fatalf("%d pictures at the start, want 1:\n%s", n, w.out)
		}
		time.Sleep(3 * growOld) // the bubble's clock
		setReady(t, c, "2/2")
		settled()
		if n := strings.Count(w.out.String(), "--- "); n != 1 {
			t.Errorf("%d pictures while nothing changed, want 1:\n%s", n, w.out)
		}
		setReady(t, c, "1/2")
		settled()
		w.stop()
		if code := <-w.done; code != exit.Interrupted {
			t.Errorf("exit %d after Ctrl-C, want %d", code, exit.Interrupted)
		}
		_, second, _ := strings.Cut(w.out.String(), "\n\n--- ")
		if !strings.Contains(second, "1/2 nodes in sync") {
			t.Errorf("the second picture does not show the change:\n%s", w.out)
		}
		if strings.Contains(w.out.String()+w.errOut.String(), "\x1b") {
			t.Error("a pipe got escape codes")
		}
		if w.errOut.String() != "error: interrupted\n" {
			t.Errorf("stderr = %q", w.errOut)
		}
	})
}

func TestWatchOnATerminalDrawsOver(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		c := plugintest.Client(plugintest.Active("demo", 1, 1).Objects()...)
		w := watchStatus(t, c, true, "demo")
		settled()
		setReady(t, c, "1/2")
		settled()
		w.stop()
		<-w.done
		frames := strings.Split(w.out.String(), goHome)
		if last := frames[len(frames)-1]; !strings.Contains(last, "1/2 nodes in sync"+clearLine+"\n") || !strings.HasSuffix(last, clearBelow) {
			t.Errorf("the last frame is %q", last)
		}
		if n := strings.Count(w.out.String(), clearScreen); n != 1 {
			t.Errorf("the screen was cleared %d times, want once", n)
		}
	})
}

func TestWatchEndsWhenTheClusterIsGone(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		f := plugintest.Active("demo", 1, 0)
		c := plugintest.Client(f.Objects()...)
		w := watchStatus(t, c, false, "demo")
		settled()
		if err := c.Delete(t.Context(), f.Cluster); err != nil {
			t.Fatal(err)
		}
		if code := <-w.done; code != exit.Failed || w.errOut.String() != "error: cluster demo in namespace team-a was deleted\n" {
			t.Errorf("exit %d with %q", code, w.errOut)
		}
	})
}

func TestWatchGoesOnWhileTheServerIsAway(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		var watches atomic.Int32
		first := watch.NewFake()
		c := interceptor.NewClient(plugintest.Client(plugintest.Active("demo", 1, 0).Objects()...), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if away.Load() {
					return errors.New("connection refused")
				}
				return c.List(ctx, list, opts...)
			},
			Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
				if watches.Add(1) == 1 {
					return first, nil
				}
				return c.Watch(ctx, list, opts...)
			},
		})
		w := watchStatus(t, c, false)
		settled()
		away.Store(true)
		first.Stop()
		time.Sleep(time.Minute) // the bubble's clock
		if want := "warning: list valkeyclusters: connection refused; trying again\n"; w.errOut.String() != want {
			t.Errorf("while it is away stderr is %q, want %q", w.errOut, want)
		}
		away.Store(false)
		time.Sleep(time.Minute) // the bubble's clock
		setReady(t, c, "0/1")
		settled()
		w.stop()
		if code := <-w.done; code != exit.Interrupted || !strings.Contains(w.out.String(), "0/1") {
			t.Errorf("exit %d with\n%s\nwant that it went on", code, w.out)
		}
	})
}

func TestWatchOfTheListShowsNewClusters(t *testing.T) {
	plugintest.Kubeconfig(t)
	synctest.Test(t, func(t *testing.T) {
		c := plugintest.Client()
		w := watchStatus(t, c, false)
		settled()
		if !strings.Contains(w.out.String(), "No clusters found in namespace team-a.") {
			t.Errorf("at the start: %q", w.out)
		}
		if err := c.Create(t.Context(), plugintest.Active("demo", 1, 0).Cluster); err != nil {
			t.Fatal(err)
		}
		settled()
		w.stop()
		<-w.done
		if !strings.Contains(w.out.String(), "\ndemo ") {
			t.Errorf("the new cluster is not shown:\n%s", w.out)
		}
	})
}

func TestFit(t *testing.T) {
	if got, want := fit("long line\nb\n", 5, 5), "long…\x1b[K\nb\x1b[K\n"; got != want {
		t.Errorf("fit() = %q, want %q", got, want)
	}
	if got, want := fit("a\nb\n", 80, 5), "a\x1b[K\nb\x1b[K\n"; got != want {
		t.Errorf("fit() = %q, want %q", got, want)
	}
	if got, want := fit("a\nb\nc\nd\n", 80, 3), "a\x1b[K\nb\x1b[K\n… 2 lines more: enlarge the window, or leave out -w\x1b[K\n"; got != want {
		t.Errorf("fit() = %q, want %q", got, want)
	}
}
