//go:build e2e

package suite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// waitNothingLeft waits until all that the manager made is gone.
func waitNothingLeft(t *testing.T, s *harness.Space) {
	t.Helper()
	s.Eventually("everything is deleted", harness.ActiveWithin, func() error {
		var errs []error
		for _, o := range ours(everything(t, s)) {
			errs = append(errs, fmt.Errorf("%s %s is still there", o.GetKind(), o.GetName()))
		}
		return errors.Join(errs...)
	})
}

// D-01: whatever the propagation, the manager makes nothing anew, and what is left
// is what was asked for.
func TestDeletionLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, cascade := range []string{"background", "foreground"} {
		t.Run(cascade, func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t).Space(t, 4)
			s.Create(s.Cluster("c", 2, 1))
			s.WaitActive("c")
			audit, local := s.Audit(t, "that nothing is made after a cluster was deleted")
			var mark harness.Mark
			if local {
				var err error
				if mark, err = audit.Mark(); err != nil {
					t.Fatal(err)
				}
			}
			begin := time.Now()
			if r := s.Kubectl("delete", "vkc", "c", "--cascade="+cascade, "--timeout=3m"); r.Code != 0 {
				t.Fatal(r)
			}
			waitNothingLeft(t, s)
			t.Logf("gone after %s", time.Since(begin).Round(100*time.Millisecond))
			if local {
				wantNoCreates(t, s, audit, mark)
			}
		})
	}
}

func wantNoCreates(t *testing.T, s *harness.Space, audit *harness.AuditLog, mark harness.Mark) {
	t.Helper()
	entries, err := audit.Since(mark, harness.ManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Verb == "create" && e.ObjectRef != nil && e.ObjectRef.Namespace == s.Name && e.ObjectRef.Resource != "events" {
			t.Errorf("made after the cluster was deleted: %s", e)
		}
	}
}

func TestOrphanedNodesAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 4)
	s.Create(s.Cluster("c", 2, 1))
	s.WaitActive("c")
	if r := s.Kubectl("delete", "vkc", "c", "--cascade=orphan", "--timeout=3m"); r.Code != 0 {
		t.Fatal(r)
	}
	audit, local := s.Audit(t, "that the manager leaves orphans alone")
	var mark harness.Mark
	if local {
		var err error
		if mark, err = audit.Mark(); err != nil {
			t.Fatal(err)
		}
	}
	// Longer than the slowest tick.
	harness.Pause(t.Context(), 12*time.Second)
	if n := len(s.Pods("c")); n != 4 {
		t.Errorf("%d of 4 pods are left", n)
	}
	s.WaitFormed("c", 2, 1)
	if local {
		entries, err := audit.Since(mark, harness.ManagerUser)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Writes() && e.Status.Code < 300 && e.ObjectRef != nil && e.ObjectRef.Namespace == s.Name {
				t.Errorf("the manager wrote to an orphan: %s", e)
			}
		}
	}
	// Whoever orphaned them deletes them by their label.
	kinds := "valkeynodes,services,secrets,configmaps,poddisruptionbudgets"
	if r := s.Kubectl("delete", kinds, "-l", v1alpha1.LabelInstance+"=c", "--timeout=3m"); r.Code != 0 {
		t.Fatal(r)
	}
	waitNothingLeft(t, s)
}

// A cluster that is made again at once waits for what the former one left, and
// takes over nothing of it.
func TestClusterOfAFormerNameComesUp(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 6)
	s.Create(s.Cluster("c", 3, 0))
	former := s.WaitActive("c")
	old := map[string]bool{}
	for _, n := range s.Nodes("c") {
		old[string(n.UID)] = true
	}
	s.Delete(former, client.PropagationPolicy(metav1.DeletePropagationBackground))
	s.Eventually("the name is free", 30*time.Second, func() error {
		return s.Client.Create(t.Context(), s.Cluster("c", 2, 1))
	})
	s.WaitActive("c")
	s.WaitFormed("c", 2, 1)
	for _, n := range s.Nodes("c") {
		if old[string(n.UID)] {
			t.Errorf("node %s is one of the former cluster", n.Name)
		}
	}
	for _, e := range s.Events() {
		if e.Reason == v1alpha1.ReasonNameConflict && !strings.Contains(e.Message, "former cluster") {
			t.Errorf("a former cluster's object was taken for somebody else's: %s", e.Message)
		}
	}
}

// D-03: ownership deletes everything, also when nobody is there to help.
func TestDeletionNeedsNoManager(t *testing.T) {
	e := harness.Start(t)
	s := e.Space(t, 4)
	s.Create(s.Cluster("c", 2, 1))
	c := s.WaitActive("c")
	t.Cleanup(func() {
		if err := e.ScaleManager(s.Background(), 1); err != nil {
			t.Error(err)
		}
	})
	if err := e.ScaleManager(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	s.Delete(c)
	waitNothingLeft(t, s)
}
