//go:build e2e

package suite

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// F-10: a Kubernetes node stops, and pods on it that are deleted stay Terminating,
// as nobody is left to end them. They are members no more, and others take their
// place. Nothing else runs meanwhile: it would be hit too.
func TestPodsThatNobodyCanEndAreReplaced(t *testing.T) {
	e := harness.Start(t)
	if !e.Local {
		e.CannotCheck(t, "what becomes of pods on a Kubernetes node that stops")
		return
	}
	const keys = 300
	s := e.Space(t, 10)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	host := quietHost(t, s)
	s.WriteKeys("c", keys)
	lost := map[string]bool{}
	for _, pod := range s.Pods("c") {
		lost[pod.Name] = pod.Spec.NodeName == host
	}
	t.Logf("node %s stops with pods of %v", host, lost)
	if err := clusterctl.NodeStop(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	started := false
	start := func() {
		if started {
			return
		}
		started = true
		if err := clusterctl.NodeStart(s.Background(), host); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(start)
	s.Eventually("Kubernetes has noticed", 3*time.Minute, func() error {
		var node corev1.Node
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: host}, &node); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
				return nil
			}
		}
		return fmt.Errorf("node %s has conditions %+v", host, node.Status.Conditions)
	})
	begin := time.Now()
	for _, pod := range s.Pods("c") {
		if !lost[pod.Name] {
			continue
		}
		// The manager may have given it up already.
		if err := client.IgnoreNotFound(s.Client.Delete(t.Context(), &pod)); err != nil {
			t.Fatal(err)
		}
	}
	servers := waitWhole(s, "others have taken their place", harness.ActiveWithin)
	t.Logf("replaced %s after the deletion", time.Since(begin).Round(100*time.Millisecond))
	for _, server := range servers {
		if server.Pod.Spec.NodeName == host || lost[server.Pod.Name] {
			t.Errorf("pod %s on node %s is a member", server.Pod.Name, server.Pod.Spec.NodeName)
		}
	}
	s.WantKeys("c", keys)
	stuck := 0
	for _, pod := range s.Pods("c") {
		if lost[pod.Name] && !pod.DeletionTimestamp.IsZero() {
			stuck++
		}
	}
	if stuck == 0 {
		t.Error("no pod is stuck: something else was tested")
	}
	start()
	s.Eventually("they end when their node is back", harness.ActiveWithin, func() error {
		for _, pod := range s.Pods("c") {
			if lost[pod.Name] {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
		}
		return nil
	})
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1)
	s.WantKeys("c", keys)
}

// quietHost starts the test's own client on the manager's Kubernetes node and returns
// another one with pods of cluster c, of a primary if possible. There is one, as the
// two pods of a shard are in different zones.
func quietHost(t *testing.T, s *harness.Space) string {
	t.Helper()
	manager, err := s.WaitForManager(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	s.StartClientOn(manager.Spec.NodeName)
	quiet := ""
	for _, server := range s.WaitFormed("c", 3, 1) {
		switch host := server.Pod.Spec.NodeName; {
		case host == manager.Spec.NodeName:
		case quiet == "", server.Self().Role == topology.RolePrimary:
			quiet = host
		}
	}
	if quiet == "" {
		t.Fatalf("all pods of the cluster are on node %s", manager.Spec.NodeName)
	}
	return quiet
}
