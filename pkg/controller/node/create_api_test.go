//go:build api

package node

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func configMap(w *world, node *v1alpha1.ValkeyNode) *corev1.ConfigMap {
	w.Helper()
	found := &corev1.ConfigMap{}
	if !w.get(objects.NodeConfigMap(node, ""), found) {
		return nil
	}
	return found
}

func TestAJoiningNodeGetsItsConfigAndItsPodOnce(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.ValkeyCluster) {
		c.Spec.PodAnnotations = map[string]string{"example.com/team": "checkout"}
	})
	node := w.node()
	w.pass(node)
	pod, conf := w.pod(node), configMap(w, node)
	if pod == nil || conf == nil {
		t.Fatalf("pod %v, ConfigMap %v", pod != nil, conf != nil)
	}
	if !metav1.IsControlledBy(pod, node) || !metav1.IsControlledBy(conf, node) {
		t.Error("they don't belong to the node")
	}
	if pod.Annotations["example.com/team"] != "checkout" {
		t.Errorf("annotations %v", pod.Annotations)
	}
	text := conf.Data[objects.ConfigFile]
	for _, line := range []string{"maxmemory-policy allkeys-lru\n", "cluster-enabled yes\n", "bind 0.0.0.0\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("valkey.conf lacks %q:\n%s", line, text)
		}
	}
	w.wantCondition(node, "True Created")
	w.wantEvents() // progress makes none
	if len(w.warnings.texts) > 0 {
		t.Errorf("O-01: the API server warns: %v", w.warnings.texts)
	}

	versions := func() []string {
		live := &v1alpha1.ValkeyNode{}
		w.get(node, live)
		return []string{live.ResourceVersion, w.pod(node).ResourceVersion, configMap(w, node).ResourceVersion}
	}
	before := versions()
	for range 10 {
		w.pass(node)
	}
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("H-02: a steady state writes: %s", diff)
	}
}

func TestTheAddressOfThePodIsKeptCurrentAndOutlivesIt(t *testing.T) {
	w := newWorld(t)
	node := w.node()
	w.pass(node)
	address := func() string {
		live := &v1alpha1.ValkeyNode{}
		w.get(node, live)
		return live.Status.PodIP
	}
	if got := address(); got != "" {
		t.Errorf("B-06: a pod without an IP has address %q", got)
	}
	for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
		pod := w.pod(node)
		pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
		if err := server.Client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		w.pass(node)
		if got := address(); got != ip {
			t.Errorf("address %q, want %q", got, ip)
		}
	}
	w.delete(w.pod(node))
	w.pass(node)
	if got := address(); got != "10.0.0.2" {
		t.Errorf("address %q after the pod is gone", got)
	}
}

func TestAPodThatIsGoneIsNotMadeAgain(t *testing.T) {
	w := newWorld(t)
	node := w.node()
	w.pass(node)
	w.delete(w.pod(node))
	for range 3 {
		w.pass(node)
	}
	if w.pod(node) != nil {
		t.Error("F-06: the same node got a second pod")
	}
}

func TestAManagerThatWasKilledInBetweenGoesOn(t *testing.T) {
	t.Run("after the pod and before the status", func(t *testing.T) {
		w := newWorld(t)
		node := w.node()
		made := objects.Pod(node, objects.PodInput{})
		w.create(made)
		w.pass(node)
		if pod := w.pod(node); pod == nil || pod.UID != made.UID {
			t.Error("its own pod was not taken for its own")
		}
		w.wantCondition(node, "True Created")
	})
	t.Run("after the ConfigMap and before the pod", func(t *testing.T) {
		w := newWorld(t)
		node := w.node()
		w.create(objects.NodeConfigMap(node, "an announcement of yesterday"))
		w.pass(node)
		if w.pod(node) == nil || !strings.Contains(configMap(w, node).Data[objects.ConfigFile], "cluster-enabled yes") {
			t.Error("the pod would start with an old valkey.conf")
		}
	})
	t.Run("with a cache that shows neither pod nor status", func(t *testing.T) {
		w := newWorld(t)
		node := w.node()
		w.pass(node)
		first := w.pod(node)
		stale := node.DeepCopy() // as created
		if _, err := w.give(t.Context(), stale); err != nil {
			t.Fatal(err)
		}
		w.delete(first)
		if _, err := w.give(t.Context(), stale); err != nil {
			t.Fatal(err)
		}
		if w.pod(node) != nil {
			t.Error("the same node got a second pod")
		}
	})
}

func TestNothingIsMadeForWhatIsPausedLeavingOrOfAnother(t *testing.T) {
	for name, prepare := range map[string]func(w *world) *v1alpha1.ValkeyNode{
		"cluster is paused": func(w *world) *v1alpha1.ValkeyNode {
			w.cluster.Spec.Paused = true
			w.update(w.cluster)
			return w.node()
		},
		"cluster is being deleted, children first": func(w *world) *v1alpha1.ValkeyNode {
			node := w.node()
			if err := server.Client.Delete(w.Context(), w.cluster, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
				w.Fatal(err)
			}
			return node
		},
		"cluster is gone": func(w *world) *v1alpha1.ValkeyNode {
			node := w.node()
			w.delete(w.cluster)
			return node
		},
		"cluster is another of the same name": func(w *world) *v1alpha1.ValkeyNode {
			return w.node(func(n *v1alpha1.ValkeyNode) { n.OwnerReferences[0].UID = "former" })
		},
		"node is being deleted": func(w *world) *v1alpha1.ValkeyNode {
			node := w.node(func(n *v1alpha1.ValkeyNode) { n.Finalizers = []string{"example.com/hold"} })
			w.delete(node)
			return node
		},
		"node is active": func(w *world) *v1alpha1.ValkeyNode {
			return w.node(func(n *v1alpha1.ValkeyNode) { n.Spec.Lifecycle = v1alpha1.LifecycleActive })
		},
		"node is leaving": func(w *world) *v1alpha1.ValkeyNode {
			return w.node(func(n *v1alpha1.ValkeyNode) { n.Spec.Lifecycle = v1alpha1.LifecycleLeaving })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			node := prepare(w)
			for range 3 {
				w.pass(node)
			}
			if w.pod(node) != nil || configMap(w, node) != nil {
				t.Error("D-01: something was made")
			}
			if c := w.condition(node); c != "" {
				t.Errorf("condition %s", c)
			}
		})
	}
}

func (w *world) update(obj client.Object) {
	w.Helper()
	if err := server.Client.Update(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func TestATLSNodeIsConfiguredWithTheFilesOfTheMoment(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.ValkeyCluster) { c.Spec.TLS = &v1alpha1.TLS{SecretRef: "mine"} })
	material := objects.TLSMaterial{CA: []byte("ca"), Certificate: []byte("leaf"), Key: []byte("key")}
	w.create(objects.TLSSecret(w.cluster, material))
	node := w.node()
	w.pass(node)
	text := configMap(w, node).Data[objects.ConfigFile]
	for _, want := range []string{
		"port 0\n", "tls-port 6379\n", material.Files().Certificate, material.Files().Key, material.Files().CA,
		"cluster-announce-hostname c-0a1b2.c." + node.Namespace + ".svc.kube.prod\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("valkey.conf lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "cluster.local") {
		t.Error("V-03: the domain is a setting")
	}
	if len(w.warnings.texts) > 0 {
		t.Errorf("O-01: the API server warns: %v", w.warnings.texts)
	}
}
