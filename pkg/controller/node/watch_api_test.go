//go:build api

package node

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey/valkeytest"
)

// run starts the controller for the world's namespace, until the test ends.
func run(w *world) {
	w.Helper()
	mgr, err := ctrl.NewManager(server.ManagerConfig(), ctrl.Options{
		Scheme:     harness.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.cluster.Namespace: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		w.Fatal(err)
	}
	if err := SetupWithManager(mgr, w.Options); err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("manager: %v", err)
		}
	})
}

func TestNodesPodsAndAResumedClusterAreNoticed(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.ValkeyCluster) { c.Spec.Paused = true })
	run(w)
	node := w.node()
	w.cluster.Spec.Paused = false
	w.update(w.cluster)
	valkeytest.Eventually(w.T, "the controller to notice", func() error {
		if w.pod(node) == nil {
			return errors.New("no pod after the cluster was resumed")
		}
		return nil
	})
	pod := w.pod(node)
	pod.Status.PodIP, pod.Status.PodIPs = "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}}
	if err := server.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	valkeytest.Eventually(w.T, "the controller to notice", func() error {
		live := &v1alpha1.ValkeyNode{}
		w.get(node, live)
		if live.Status.PodIP != "10.0.0.1" {
			return errors.New("the address is not noted")
		}
		return nil
	})
	w.delete(w.pod(node))
	second := w.node(func(n *v1alpha1.ValkeyNode) { n.Name = "c-fffff" })
	valkeytest.Eventually(w.T, "the controller to notice", func() error {
		if w.pod(second) == nil {
			return errors.New("no pod for a second node")
		}
		return nil
	})
	if w.pod(node) != nil {
		t.Error("the first node got a second pod")
	}
}
