//go:build api

package node

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// passes reconciles a few times and checks that each pass asks to be repeated
// soon, but not at once.
func (w *world) passes(node *v1alpha1.ValkeyNode) {
	w.Helper()
	for range 3 {
		if after := w.pass(node).RequeueAfter; after < minRetry || after > maxRetry {
			w.Errorf("tried again in %s", after)
		}
	}
}

func TestAPodThatTheAPIServerRefusesIsReportedOnceAndTriedAgain(t *testing.T) {
	w := newWorld(t)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "class-of-" + w.cluster.Namespace}, Value: 1}
	node := w.node(func(n *v1alpha1.ValkeyNode) { n.Spec.Placement = &v1alpha1.Placement{PriorityClassName: class.Name} })
	w.passes(node)
	w.wantCondition(node, "False PodRejected", "no PriorityClass with name "+class.Name+" was found")
	w.wantEvents("Warning PodRejected")

	w.create(class)
	w.pass(node)
	if w.pod(node) == nil {
		t.Error("O-03: the class is there now, and there is no pod")
	}
	w.wantCondition(node, "True Created")
	w.wantEvents("Normal Created")
}

// The API server refuses an event with more text, and nobody would hear of the pod.
func TestALongRefusalFitsIntoAnEvent(t *testing.T) {
	w := newWorld(t)
	node := w.node(func(n *v1alpha1.ValkeyNode) {
		n.Spec.Placement = &v1alpha1.Placement{Tolerations: []corev1.Toleration{{Key: strings.Repeat("no taint ", 100), Operator: corev1.TolerationOpExists}}}
	})
	w.pass(node)
	w.wantCondition(node, "False PodRejected", "tolerations[1].key")
	events := w.events()
	if len(events) != 1 {
		t.Fatalf("events %q", events)
	}
	if text := strings.TrimPrefix(events[0], "Warning PodRejected "); len(text) > 1024 || len(text) < 1000 {
		t.Errorf("an event of %d bytes, want what fits into 1024", len(text))
	}
}

func TestAQuotaAndPodSecurityAreReportedInTheAPIServersWords(t *testing.T) {
	t.Run("quota", func(t *testing.T) {
		w := newWorld(t)
		none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster.Namespace, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
		w.create(quota)
		quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // no controller does it here
		if err := server.Client.Status().Update(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
		node := w.node()
		w.passes(node)
		w.wantCondition(node, "False PodRejected", "exceeded quota: none")
		w.wantEvents("exceeded quota")
	})
	t.Run("pod security", func(t *testing.T) {
		w := newWorld(t)
		w.Options.PlatformIDs = true // still restricted: the ids are no part of it
		node := w.node()
		w.pass(node)
		if pod := w.pod(node); pod == nil || pod.Spec.SecurityContext.RunAsUser != nil {
			t.Error("a pod without ids is not admitted to a restricted namespace")
		}
	})
}

func TestAnObjectOfAnotherOwnerIsNotTouched(t *testing.T) {
	foreignPod := func(w *world) client.Object {
		pod := objects.Pod(&v1alpha1.ValkeyNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster.Namespace, Name: "c-0a1b2", UID: "x"},
			Spec:       v1alpha1.ValkeyNodeSpec{Image: "other", ClusterName: "c"},
		}, objects.PodInput{})
		pod.OwnerReferences = nil
		return pod
	}
	foreignConfig := func(w *world) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster.Namespace, Name: "c-0a1b2-config"}, Data: map[string]string{"a": "b"}}
	}
	for name, foreign := range map[string]func(*world) client.Object{"Pod c-0a1b2": foreignPod, "ConfigMap c-0a1b2-config": foreignConfig} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			theirs := foreign(w)
			w.create(theirs)
			node := w.node()
			w.passes(node)
			w.wantCondition(node, "False NameConflict", name+" exists and does not belong to this node")
			w.wantEvents("Warning NameConflict")
			live, ok := theirs.DeepCopyObject().(client.Object)
			if !ok || !w.get(theirs, live) || live.GetResourceVersion() != theirs.GetResourceVersion() {
				t.Error("it was changed")
			}
			w.delete(theirs)
			w.pass(node)
			if w.pod(node) == nil {
				t.Error("the name is free now, and there is no pod")
			}
		})
	}
}

func TestAnObjectOfAFormerNodeOfTheNameIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	node := w.node()
	former := node.DeepCopy()
	former.UID = "former"
	pod := objects.Pod(former, objects.PodInput{})
	w.create(pod)
	w.passes(node)
	w.wantCondition(node, "False Waiting", "still belongs to a former node")
	w.wantEvents()
	w.delete(pod)
	w.pass(node)
	if mine := w.pod(node); mine == nil || !metav1.IsControlledBy(mine, node) {
		t.Error("the former pod is gone, and there is no new one")
	}
}

// lateReader finds that the object it is to read has gone since.
type lateReader struct {
	client.Reader
	gone func() client.Object
}

func (l lateReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if gone := l.gone(); gone.GetName() == key.Name && objects.KindOf(gone) == objects.KindOf(obj) {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	return l.Reader.Get(ctx, key, obj, options...)
}

// What was in the way and has gone when it is looked at is no error and no conflict.
func TestWhatHasJustGoneIsTriedAgainAtOnce(t *testing.T) {
	w := newWorld(t)
	node := w.node()
	former := node.DeepCopy()
	former.UID = "former"
	pod := objects.Pod(former, objects.PodInput{})
	w.create(pod)
	live := w.Live
	w.Live = lateReader{Reader: live, gone: func() client.Object { return pod }}
	result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(node)})
	if err != nil || result.RequeueAfter != goneRetry {
		t.Errorf("the answer is %v, %v", result, err)
	}
	w.wantEvents()
	w.Live = live
	w.delete(pod)
	w.pass(node)
	if mine := w.pod(node); mine == nil || !metav1.IsControlledBy(mine, node) {
		t.Error("there is no new pod")
	}
}
