//go:build e2e

package suite

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
)

// H-01, H-02: while nothing changes the manager writes nothing but its Lease, makes
// no event and moves no object's version. Nothing else runs meanwhile.
func TestSteadyStateWritesNothing(t *testing.T) {
	e := harness.Start(t)
	s := e.Space(t, 1+6+6)
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
	before, events := versions(t, s), len(s.Events())
	audit, local := e.Audit(t, "that an idle manager writes nothing but its Lease")
	var mark harness.Mark
	if local {
		var err error
		if mark, err = audit.Mark(); err != nil {
			t.Fatal(err)
		}
	}
	harness.Pause(t.Context(), span)
	if after := versions(t, s); !maps.Equal(before, after) {
		for name, version := range after {
			if before[name] != version {
				t.Errorf("%s went from version %q to %q", name, before[name], version)
			}
		}
	}
	if n := len(s.Events()); n != events {
		t.Errorf("%d events were made while nothing changed", n-events)
	}
	if local {
		wantLeaseOnly(t, audit, mark, span)
	}
}

// settle waits until nothing has changed for some seconds: kubelets and the
// controllers of Kubernetes write down the end of a bootstrap too.
func settle(t *testing.T, s *harness.Space) {
	t.Helper()
	var last map[string]string
	since := time.Now()
	s.Eventually("everything stands still", time.Minute, func() error {
		now := versions(t, s)
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < 5*time.Second {
			return fmt.Errorf("the last change was %s ago", quiet.Round(time.Second))
		}
		return nil
	})
}

// versions of all objects that the manager made, and of the clusters.
func versions(t *testing.T, s *harness.Space) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range everything(t, s) {
		if len(o.GetOwnerReferences()) > 0 || o.GetKind() == "ValkeyCluster" {
			out[o.GetKind()+" "+o.GetName()] = o.GetResourceVersion()
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
