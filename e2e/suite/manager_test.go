//go:build e2e

package suite

import (
	"testing"

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
