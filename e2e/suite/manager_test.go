//go:build e2e

package suite

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
)

func TestManagerListensOnNothing(t *testing.T) {
	e := harness.Start(t)
	leader, err := e.WaitForManager(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(leader.Spec.Containers[0].Ports) > 0 {
		t.Errorf("the manager's pod declares ports %v", leader.Spec.Containers[0].Ports)
	}
	if !e.Local {
		e.CannotCheck(t, "that no socket in the manager's pod listens")
		return
	}
	sockets, connections, err := e.ManagerSockets(leader)
	if err != nil {
		t.Fatal(err)
	}
	if connections == 0 {
		t.Error("the manager has no connection to the API server: some other process was looked at")
	}
	for _, socket := range sockets {
		t.Errorf("the manager's pod listens: %s", socket)
	}
}

// H-04: a thousand Secrets of 100 KB in a namespace that is none of its business cost
// the manager less than 20 MB, whether it runs when they come or starts when they are
// there. Nothing else runs meanwhile.
func TestForeignSecretsCostTheManagerNoMemory(t *testing.T) {
	const (
		secrets, size = 1000, 100_000
		most          = 20_000_000
	)
	e := harness.Start(t)
	if !e.Local {
		e.CannotCheck(t, "how much memory the manager has")
		return
	}
	s := e.Space(t, 3)
	s.Create(s.Cluster("c", 3, 0))
	s.WaitActive("c")
	before, _ := restarted(t, e)
	data := []byte(strings.Repeat("x", size))
	errs := make([]error, 8)
	var group sync.WaitGroup
	for worker := range errs {
		group.Go(func() {
			for i := worker; i < secrets && errs[worker] == nil; i += len(errs) {
				errs[worker] = s.Client.Create(t.Context(), &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.Name, Name: fmt.Sprintf("foreign-%d", i)},
					Data:       map[string][]byte{"data": data},
				})
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	running := steadyMemory(t, e)
	after, peak := restarted(t, e)
	t.Logf("the manager has %d MB without the Secrets, %d MB when they have come, %d MB when it starts with them (%d MB at most)", before>>20, running>>20, after>>20, peak>>20)
	if running-before >= most || after-before >= most {
		t.Errorf("from %d bytes the manager has grown to %d and %d", before, running, after)
	}
	pods, err := e.ManagerPods(t.Context())
	if err != nil || len(pods) != 1 {
		t.Fatalf("the manager's pods are %v: %v", pods, err)
	}
	if limit := pods[0].Spec.Containers[0].Resources.Limits.Memory().Value(); limit == 0 || peak >= limit {
		t.Errorf("the manager started with %d bytes of the %d that it may have", peak, limit)
	}
	s.WaitActive("c")
}

// restarted returns how much memory a manager has that has just started.
func restarted(t *testing.T, e *harness.Env) (now, most int64) {
	t.Helper()
	leader := e.ReplaceManager(t)
	now = steadyMemory(t, e)
	_, most, err := e.ManagerMemory(leader)
	if err != nil {
		t.Fatal(err)
	}
	return now, most
}

// steadyMemory returns how much memory the manager has after a time in which it has
// little to do.
func steadyMemory(t *testing.T, e *harness.Env) int64 {
	t.Helper()
	leader, err := e.WaitForManager(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	harness.Pause(t.Context(), 5*time.Second)
	now, _, err := e.ManagerMemory(leader)
	if err != nil {
		t.Fatal(err)
	}
	return now
}
