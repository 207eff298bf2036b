//go:build e2e

package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Space is the namespace of one test.
type Space struct {
	*Env
	// Name of the namespace.
	Name string

	t testing.TB
}

// Space makes a namespace that enforces the restricted Pod Security Standard. It
// waits until the test may have that many pods at once. The namespace goes when
// the test ends; if it failed, what it held is saved first.
func (e *Env) Space(t testing.TB, pods int) *Space {
	t.Helper()
	e.budget.take(pods)
	s := &Space{Env: e, t: t}
	t.Cleanup(func() {
		s.end()
		e.budget.give(pods)
	})
	labels := ours()
	for _, mode := range []string{"enforce", "audit", "warn"} {
		labels["pod-security.kubernetes.io/"+mode] = "restricted"
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: labels}}
	if err := e.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	s.Name = ns.Name
	t.Logf("%s: %s runs in namespace %s", time.Now().Format(time.TimeOnly), t.Name(), s.Name)
	return s
}

func (s *Space) end() {
	ctx := context.Background()
	if s.Name == "" {
		return
	}
	if s.t.Failed() {
		if err := s.save(ctx); err != nil {
			s.t.Logf("save what namespace %s holds: %v", s.Name, err)
		}
		if kept() {
			return
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Name}}
	if err := client.IgnoreNotFound(s.Client.Delete(ctx, ns)); err != nil {
		s.t.Errorf("delete namespace %s: %v", s.Name, err)
	}
}

// WaitAlone waits until the namespaces of tests that have ended are gone: the manager
// may still write in them.
func (e *Env) WaitAlone(t testing.TB) {
	t.Helper()
	if err := e.waitNamespacesGone(t.Context()); err != nil {
		t.Fatalf("wait for the end of other tests: %v", err)
	}
}

// Key names an object of this namespace.
func (s *Space) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Name, Name: name}
}

// Context ends with the test.
func (s *Space) Context() context.Context { return s.t.Context() }

// Background goes on when the test has ended, for what it cleans up.
func (s *Space) Background() context.Context { return context.WithoutCancel(s.t.Context()) }

// Cluster returns a ValkeyCluster of this namespace that was not created yet.
func (s *Space) Cluster(name string, shards, replicas int32) *v1alpha1.ValkeyCluster {
	return &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Name, Name: name},
		Spec:       v1alpha1.ValkeyClusterSpec{ConfigRef: ConfigName, Shards: shards, ReplicasPerShard: replicas},
	}
}

// Create creates an object, or fails the test.
func (s *Space) Create(obj client.Object) {
	s.t.Helper()
	if err := s.Client.Create(s.t.Context(), obj); err != nil {
		s.t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
	}
}

// CreateAll creates pods at once.
func (s *Space) CreateAll(pods []*corev1.Pod) {
	s.t.Helper()
	errs := make([]error, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() { errs[i] = s.Client.Create(s.t.Context(), pod) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatalf("create pods: %v", err)
	}
}

// Delete deletes an object, or fails the test.
func (s *Space) Delete(obj client.Object, options ...client.DeleteOption) {
	s.t.Helper()
	if err := s.Client.Delete(s.t.Context(), obj, options...); err != nil {
		s.t.Fatalf("delete %T %s: %v", obj, obj.GetName(), err)
	}
}

// Publish creates an object of the menu, which is in no namespace, and deletes it
// when the test ends.
func (s *Space) Publish(obj client.Object) {
	s.t.Helper()
	obj.SetLabels(ours())
	s.Create(obj)
	s.t.Cleanup(func() {
		if err := client.IgnoreNotFound(s.Client.Delete(context.Background(), obj)); err != nil {
			s.t.Errorf("delete %T %s: %v", obj, obj.GetName(), err)
		}
	})
}

// Get reads a cluster.
func (s *Space) Get(name string) *v1alpha1.ValkeyCluster {
	s.t.Helper()
	c := &v1alpha1.ValkeyCluster{}
	if err := s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.Name, Name: name}, c); err != nil {
		s.t.Fatalf("read cluster %s: %v", name, err)
	}
	return c
}

// Edit changes the spec of a cluster.
func (s *Space) Edit(name string, change func(*v1alpha1.ValkeyClusterSpec)) {
	s.t.Helper()
	c := s.Get(name)
	before := c.DeepCopy()
	change(&c.Spec)
	if err := s.Client.Patch(s.t.Context(), c, client.MergeFrom(before)); err != nil {
		s.t.Fatalf("edit cluster %s: %v", name, err)
	}
}

// Nodes lists the ValkeyNodes of a cluster.
func (s *Space) Nodes(cluster string) []v1alpha1.ValkeyNode {
	s.t.Helper()
	var list v1alpha1.ValkeyNodeList
	s.list(&list, cluster)
	return list.Items
}

// Pods lists the pods of a cluster.
func (s *Space) Pods(cluster string) []corev1.Pod {
	s.t.Helper()
	var list corev1.PodList
	s.list(&list, cluster)
	return list.Items
}

// AllPods lists the pods of the namespace.
func (s *Space) AllPods() []corev1.Pod {
	s.t.Helper()
	var list corev1.PodList
	if err := s.Client.List(s.t.Context(), &list, client.InNamespace(s.Name)); err != nil {
		s.t.Fatalf("list pods: %v", err)
	}
	return list.Items
}

func (s *Space) list(list client.ObjectList, cluster string) {
	s.t.Helper()
	err := s.Client.List(s.t.Context(), list, client.InNamespace(s.Name), client.MatchingLabels{v1alpha1.LabelInstance: cluster})
	if err != nil {
		s.t.Fatalf("list %T of cluster %s: %v", list, cluster, err)
	}
}

// Events lists what happened in the namespace.
func (s *Space) Events() []corev1.Event {
	s.t.Helper()
	var list corev1.EventList
	if err := s.Client.List(s.t.Context(), &list, client.InNamespace(s.Name)); err != nil {
		s.t.Fatalf("list events: %v", err)
	}
	return list.Items
}

// EventsOf lists the events about a cluster with a reason.
func (s *Space) EventsOf(cluster, reason string) []corev1.Event {
	s.t.Helper()
	var out []corev1.Event
	for _, e := range s.Events() {
		if e.InvolvedObject.Kind == "ValkeyCluster" && e.InvolvedObject.Name == cluster && e.Reason == reason {
			out = append(out, e)
		}
	}
	return out
}

// WaitEvents waits until as many events about a cluster have a reason: what it was
// recorded for may be seen before. It fails the test if there are more.
func (s *Space) WaitEvents(cluster, reason string, n int) []corev1.Event {
	s.t.Helper()
	var events []corev1.Event
	s.Eventually(fmt.Sprintf("%d events have the reason %s", n, reason), time.Minute, func() error {
		if events = s.EventsOf(cluster, reason); len(events) < n {
			return fmt.Errorf("there are %d", len(events))
		}
		return nil
	})
	if len(events) > n {
		s.t.Errorf("%d events have the reason %s, want %d: %+v", len(events), reason, n, events)
	}
	return events
}

// Kubectl runs kubectl in this namespace.
func (s *Space) Kubectl(args ...string) Result {
	s.t.Helper()
	return s.RunKubectl(s.t.Context(), "", append(args, "-n", s.Name)...)
}

// Valkey runs the plugin in this namespace.
func (s *Space) Valkey(args ...string) Result {
	s.t.Helper()
	return s.Kubectl(append([]string{"valkey"}, args...)...)
}

// Eventually waits for a condition. When it doesn't come the test fails with
// what the namespace looks like.
func (s *Space) Eventually(what string, within time.Duration, check func() error) {
	s.t.Helper()
	if err := until(s.t.Context(), within, check); err != nil {
		s.t.Fatalf("%s: %v\n%s", what, err, s.picture())
	}
}

// WaitActive waits until a cluster is Active and as wished: the manager has seen
// its latest edit and has nothing left to do.
func (s *Space) WaitActive(name string) *v1alpha1.ValkeyCluster {
	s.t.Helper()
	var c *v1alpha1.ValkeyCluster
	s.Eventually("cluster "+name+" is Active and ready", ActiveWithin, func() error {
		c = s.Get(name)
		return Settled(c)
	})
	return c
}

// ActiveWithin is a generous limit for a cluster to become Active on a machine
// that other tests use at the same time.
const ActiveWithin = 3 * time.Minute

// Settled returns why a cluster is not yet Active and as wished.
func Settled(c *v1alpha1.ValkeyCluster) error {
	if c.Status.State != v1alpha1.StateActive {
		return fmt.Errorf("state is %q: %s", c.Status.State, c.Status.Message)
	}
	if c.Status.ObservedGeneration != c.Generation {
		return fmt.Errorf("generation %d was observed, it is %d", c.Status.ObservedGeneration, c.Generation)
	}
	want := map[string]metav1.ConditionStatus{
		v1alpha1.ConditionReady: metav1.ConditionTrue, v1alpha1.ConditionProgressing: metav1.ConditionFalse,
		v1alpha1.ConditionDegraded: metav1.ConditionFalse, v1alpha1.ConditionConfigResolved: metav1.ConditionTrue,
	}
	for kind, status := range want {
		got := Condition(c, kind)
		if got.Status != status {
			return fmt.Errorf("condition %s is %s: %s: %s", kind, got.Status, got.Reason, got.Message)
		}
	}
	return nil
}

// Condition of a cluster; the zero value if there is none.
func Condition(c *v1alpha1.ValkeyCluster, kind string) metav1.Condition {
	for _, condition := range c.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return metav1.Condition{}
}

// WaitCondition waits until a condition has a status and a reason and its message
// holds every one of the words.
func (s *Space) WaitCondition(name, kind string, status metav1.ConditionStatus, reason string, words ...string) {
	s.t.Helper()
	s.Eventually(fmt.Sprintf("condition %s of cluster %s is %s with reason %s", kind, name, status, reason), time.Minute, func() error {
		c := Condition(s.Get(name), kind)
		if c.Status != status || c.Reason != reason {
			return fmt.Errorf("it is %s: %s: %s", c.Status, c.Reason, c.Message)
		}
		return Contains(c.Message, words...)
	})
}

// Contains returns an error that names the first of the words that a text lacks.
func Contains(text string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("%q is missing in: %s", word, text)
		}
	}
	return nil
}

// SecretData reads the content of a Secret.
func (s *Space) SecretData(name string) map[string][]byte {
	s.t.Helper()
	var secret corev1.Secret
	if err := s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.Name, Name: name}, &secret); err != nil {
		s.t.Fatalf("read Secret %s: %v", name, err)
	}
	return secret.Data
}
