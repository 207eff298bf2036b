//go:build e2e

package suite

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// frozenFor is longer than the pauses between the manager's tries, and short enough
// that Kubernetes doesn't give the node up, which it does after 40 s at the earliest.
const frozenFor = 15 * time.Second

// L-09, L-11: with the kubelet of one Kubernetes node frozen no server goes on to a
// leaf that the servers on that node don't trust yet. It isn't parallel: other tests
// need that kubelet.
func TestSwapOfTheCAWaitsForAFrozenKubelet(t *testing.T) {
	e := harness.Start(t)
	if !e.Local {
		e.CannotCheck(t, "a swap of the CA while a kubelet is frozen")
		return
	}
	s := e.Space(t, 7)
	first, second := harness.NewAuthority(t), harness.NewAuthority(t)
	secret := s.TLSSecret("cert", first, s.Names("c")...)
	s.Create(secret)
	old := serialOf(t, secret)
	c := s.Cluster("c", 3, 1)
	c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	s.Create(c)
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1, encrypted...)
	s.WaitCondition("c", v1alpha1.ConditionTLSReady, metav1.ConditionTrue, v1alpha1.ReasonTLSServed)
	s.StartClient("cert")
	before := s.Pods("c")
	connections := s.Connect(before, encrypted...)

	node, frozen := freezable(t, s, before)
	freeze(t, node)
	t.Logf("the kubelet of %s is frozen, with pods %v", node, frozen)
	secret.Data = s.TLSSecret("cert", second, s.Names("c")...).Data
	replace(t, s, secret)
	s.Eventually("TLSReady waits for the nodes on "+node+" alone", 25*time.Second, func() error {
		return waitsFor(s.Get("c"), before, frozen)
	})
	for end := time.Now().Add(frozenFor); time.Now().Before(end); {
		for _, pod := range before {
			serial, err := servedSerial(s, pod)
			if err != nil || serial != old {
				t.Fatalf("with the kubelet of %s frozen pod %s on %s serves %s, want %s: %v", node, pod.Name, pod.Spec.NodeName, serial, old, err)
			}
		}
	}
	if err := waitsFor(s.Get("c"), before, frozen); err != nil {
		t.Error(err)
	}
	if err := clusterctl.ResumeKubelet(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	waitServed(t, s, "the straight swap", secret)
	if err := connections.Steady(); err != nil {
		t.Error(err)
	}
	wantSamePods(t, s, before)
	s.WaitFormed("c", 3, 1, encrypted...)
}

// freezable picks the Kubernetes node to freeze, by the name of one that has servers
// and neither the client nor the manager, whose commands and logs need a kubelet. It
// returns the names of its servers too.
func freezable(t *testing.T, s *harness.Space, servers []corev1.Pod) (node string, pods map[string]bool) {
	t.Helper()
	needed := map[string]bool{}
	managers, err := s.ManagerPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range append(managers, s.AllPods()...) {
		if pod.Labels[v1alpha1.LabelInstance] != "c" {
			needed[pod.Spec.NodeName] = true
		}
	}
	pods = map[string]bool{}
	for _, pod := range servers {
		if needed[pod.Spec.NodeName] || node != "" && node != pod.Spec.NodeName {
			continue
		}
		node = pod.Spec.NodeName
		pods[pod.Name] = true
	}
	if node == "" || len(pods) == len(servers) {
		t.Fatalf("no node has a part of the servers and neither the client nor the manager; those need %v", needed)
	}
	return node, pods
}

// freeze halts a kubelet, and lets it go on when the test ends, if not before.
func freeze(t *testing.T, node string) {
	t.Helper()
	t.Cleanup(func() {
		// The test's own context has ended.
		ctx := context.WithoutCancel(t.Context())
		if n, err := clusterctl.GetNode(ctx, node); err == nil && !n.KubeletPaused {
			return
		}
		if err := clusterctl.ResumeKubelet(ctx, node); err != nil {
			t.Errorf("resume the kubelet of %s: %v", node, err)
		}
	})
	if err := clusterctl.PauseKubelet(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// waitsFor checks that TLSReady is at the first step of a swap and names the frozen
// servers and no others.
func waitsFor(c *v1alpha1.ValkeyCluster, servers []corev1.Pod, frozen map[string]bool) error {
	got := harness.Condition(c, v1alpha1.ConditionTLSReady)
	if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "step 1") {
		return fmt.Errorf("TLSReady is %s: %s: %s", got.Status, got.Reason, got.Message)
	}
	for _, pod := range servers {
		if strings.Contains(got.Message, pod.Name) != frozen[pod.Name] {
			return fmt.Errorf("pod %s is on the frozen node: %t; TLSReady says: %s", pod.Name, frozen[pod.Name], got.Message)
		}
	}
	return nil
}

// servedSerial asks a server over the network, as nothing can be run in a pod whose
// kubelet is frozen.
func servedSerial(s *harness.Space, pod corev1.Pod) (string, error) {
	out, err := s.CLI("", append([]string{"-h", pod.Status.PodIP}, append(encrypted, "INFO", "tls")...)...)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if serial, ok := strings.CutPrefix(strings.TrimSpace(line), "tls_server_cert_serial:"); ok {
			return serial, nil
		}
	}
	return "", fmt.Errorf("pod %s says %q", pod.Name, out)
}
