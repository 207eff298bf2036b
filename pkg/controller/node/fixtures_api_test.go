//go:build api

package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

var server *harness.Server

func TestMain(m *testing.M) {
	harness.Main(m, &server, harness.Options{Install: true})
}

// world is one cluster in a namespace of its own, and a reconciler with the
// manager's rights. Its client has no cache, so every pass sees the truth.
type world struct {
	*testing.T
	*Reconciler

	recorder *events.FakeRecorder
	cluster  *v1alpha1.ValkeyCluster
	warnings *warnings
}

// warnings collects what the API server warns of.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

func newWorld(t *testing.T, change ...func(*v1alpha1.ValkeyCluster)) *world {
	t.Helper()
	w := &world{T: t, recorder: events.NewFakeRecorder(100), warnings: &warnings{}}
	config := rest.CopyConfig(server.ManagerConfig())
	config.WarningHandler = w.warnings
	manager := server.ClientFor(t, config)
	w.Reconciler = &Reconciler{
		Client: manager, Live: manager, Recorder: w.recorder, now: time.Now,
		Options: Options{ClusterDomain: "kube.prod", DefaultZoneSpread: v1alpha1.ZoneSpreadBestEffort},
	}
	namespace := server.Namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	w.cluster = &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Spec:       v1alpha1.ValkeyClusterSpec{ConfigRef: "small", Shards: 1, ReplicasPerShard: 1},
	}
	for _, f := range change {
		f(w.cluster)
	}
	w.create(w.cluster)
	w.create(objects.HeadlessService(w.cluster))
	return w
}

func (w *world) create(obj client.Object) {
	w.Helper()
	if err := server.Client.Create(w.Context(), obj); err != nil {
		w.Fatalf("create %s: %v", objects.KindOf(obj), err)
	}
}

func (w *world) delete(obj client.Object) {
	w.Helper()
	if err := server.Client.Delete(w.Context(), obj, client.GracePeriodSeconds(0)); err != nil {
		w.Fatalf("delete %s: %v", objects.KindOf(obj), err)
	}
}

// node creates a node of the cluster.
func (w *world) node(change ...func(*v1alpha1.ValkeyNode)) *v1alpha1.ValkeyNode {
	w.Helper()
	node := objects.Node(w.cluster, objects.NodeInput{
		Name: "c-0a1b2", JoinType: v1alpha1.JoinShard, Image: "valkey/valkey:9.1.2",
		Settings: map[string]string{"maxmemory-policy": "allkeys-lru"},
	})
	for _, f := range change {
		f(node)
	}
	w.create(node)
	return node
}

// pass reconciles a node and returns the result.
func (w *world) pass(node *v1alpha1.ValkeyNode) ctrl.Result {
	w.Helper()
	result, err := w.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(node)})
	if err != nil {
		w.Fatalf("reconcile: %v", err)
	}
	return result
}

// get reads an object by the name of another.
func (w *world) get(named client.Object, into client.Object) bool {
	w.Helper()
	err := server.Client.Get(w.Context(), client.ObjectKeyFromObject(named), into)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return err == nil
}

// pod returns the node's pod, or nil.
func (w *world) pod(node *v1alpha1.ValkeyNode) *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{}
	if !w.get(node, pod) {
		return nil
	}
	return pod
}

// condition returns the node's PodCreated condition, as "status reason: message".
func (w *world) condition(node *v1alpha1.ValkeyNode) string {
	w.Helper()
	live := &v1alpha1.ValkeyNode{}
	w.get(node, live)
	for _, c := range live.Status.Conditions {
		if c.Type == v1alpha1.ConditionPodCreated {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// events returns what was published since it was last called.
func (w *world) events() []string {
	var out []string
	for {
		select {
		case e := <-w.recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func (w *world) wantCondition(node *v1alpha1.ValkeyNode, parts ...string) {
	w.Helper()
	got := w.condition(node)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			w.Errorf("condition is %q, want %q in it", got, part)
		}
	}
}

func (w *world) wantEvents(want ...string) {
	w.Helper()
	got := w.events()
	if len(got) != len(want) {
		w.Errorf("events %q, want %d", got, len(want))
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			w.Errorf("event %q, want %q in it", got[i], want[i])
		}
	}
}
