//go:build e2e

package suite

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// H-01, H-02: while nothing changes the manager writes nothing but its Lease, makes
// no event and moves no object's version. H-06: clusters that can't start are no
// exception, and are looked at every ten seconds at most after a while. Nothing
// else runs meanwhile.
func TestSteadyStateWritesNothing(t *testing.T) {
	e := harness.Start(t)
	e.WaitAlone(t)
	s := e.Space(t, 1+6+6+2)
	begin := time.Now()
	for _, name := range []string{"nowhere-1", "nowhere-2"} {
		c := s.Cluster(name, 1, 0)
		c.Spec.Placement = nowhere()
		s.Create(c)
	}
	shapes := map[string]shape{"one": {1, 0}, "two": {3, 1}, "three": {2, 2}}
	for name, want := range shapes {
		s.Create(s.Cluster(name, want.shards, want.replicas))
	}
	for name := range shapes {
		s.WaitActive(name)
	}
	settle(t, s)
	span := 90 * time.Second
	if harness.Full() {
		span = 10 * time.Minute
	}
	before, events := ownedObjects(t, s), managerEvents(t, s)
	audit, local := e.Audit(t, "that an idle manager writes nothing but its Lease")
	var mark harness.Mark
	if local {
		var err error
		if mark, err = audit.Mark(); err != nil {
			t.Fatal(err)
		}
	}
	harness.Pause(t.Context(), span)
	wantFewPasses(t, s, begin, []string{"nowhere-1", "nowhere-2"})
	for name, after := range ownedObjects(t, s) {
		if was, ok := before[name]; !ok || was.GetResourceVersion() != after.GetResourceVersion() {
			t.Errorf("%s changed while nothing happened (-before +after):\n%s", name, cmp.Diff(was.Object, after.Object))
		}
	}
	if n := managerEvents(t, s); n != events {
		t.Errorf("%d events were made while nothing changed", n-events)
	}
	if local {
		wantLeaseOnly(t, audit, mark, span)
	}
}

// managerEvents counts what the manager has told. The scheduler repeats every few minutes
// that a pod fits nowhere.
func managerEvents(t *testing.T, s *harness.Space) int {
	t.Helper()
	told := 0
	for _, e := range s.Events() {
		if e.ReportingController == v1alpha1.ManagedBy {
			told++
		}
	}
	if told == 0 {
		t.Fatal("the manager made no event, not even of what was created")
	}
	return told
}

// wantFewPasses counts how often clusters in which nothing changes were looked at of
// late. The wait between two looks grows to 10 s in the course of 100 s.
func wantFewPasses(t *testing.T, s *harness.Space, since time.Time, names []string) {
	t.Helper()
	const window = 30 * time.Second
	harness.Pause(t.Context(), time.Until(since.Add(100*time.Second+window)))
	passes, err := s.Passes(t.Context(), time.Now().Add(-window), s.Name)
	if err != nil {
		t.Fatal(err)
	}
	// The log's times are whole seconds.
	const most = int(window/(10*time.Second)) + 1
	for _, name := range names {
		if n := passes[name]; n > most || n == 0 {
			t.Errorf("cluster %s was looked at %d times in %s, want 1 to %d", name, n, window, most)
		}
	}
}

// settle waits until nothing has changed for some seconds: kubelets and the
// controllers of Kubernetes write down the end of a bootstrap too.
func settle(t *testing.T, s *harness.Space) {
	t.Helper()
	var last map[string]string
	since := time.Now()
	s.Eventually("everything stands still", time.Minute, func() error {
		now := map[string]string{}
		for name, o := range ownedObjects(t, s) {
			now[name] = o.GetResourceVersion()
		}
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < 5*time.Second {
			return fmt.Errorf("the last change was %s ago", quiet.Round(time.Second))
		}
		return nil
	})
}

// ownedObjects are all that the manager made, and the clusters.
func ownedObjects(t *testing.T, s *harness.Space) map[string]unstructured.Unstructured {
	t.Helper()
	out := map[string]unstructured.Unstructured{}
	for _, o := range everything(t, s) {
		if len(o.GetOwnerReferences()) > 0 || o.GetKind() == "ValkeyCluster" {
			o.SetManagedFields(nil)
			out[o.GetKind()+" "+o.GetName()] = o
		}
	}
	return out
}

func wantLeaseOnly(t *testing.T, audit *harness.AuditLog, mark harness.Mark, span time.Duration) {
	t.Helper()
	entries, err := audit.Since(mark, harness.ManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	leases := 0
	reads := map[string]int{}
	for _, entry := range entries {
		switch {
		case entry.ObjectRef != nil && entry.ObjectRef.Resource == "leases":
			leases++
		case entry.Writes():
			t.Errorf("the idle manager wrote: %s", entry)
		case entry.ObjectRef != nil:
			reads[entry.Verb+" "+entry.ObjectRef.Resource]++
		}
	}
	// It renews every two seconds; none would mean that the wrong log was read.
	if leases < int(span/(10*time.Second)) {
		t.Errorf("the log shows %d requests about the Lease in %s", leases, span)
	}
	t.Logf("%d requests in %s, %d of them about the Lease; reads: %v", len(entries), span, leases, reads)
}
