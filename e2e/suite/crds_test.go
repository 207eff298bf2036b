//go:build e2e

package suite

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// U-09: a manager whose CRDs are older, as if it had been upgraded without them, makes
// no pod and deletes none. What it writes and they lack is dropped by the API server:
// it doesn't write that again and again, and looks after its clusters all the same.
// Nothing else runs meanwhile.
func TestAManagerWithOlderCRDsLooksAfterItsClusters(t *testing.T) {
	e := harness.Start(t)
	s := e.Space(t, 7)
	s.Create(s.TLSSecret("cert", harness.NewAuthority(t), s.Names("tls")...))
	encrypted := s.Cluster("tls", 1, 0)
	encrypted.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	encrypted.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true}
	s.Create(encrypted)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("tls")
	s.WaitActive("c")
	t.Cleanup(func() {
		if err := e.Reinstall(s.Background()); err != nil {
			t.Errorf("install the CRDs of this version again: %v", err)
		}
	})
	forget(t, s, "valkeyclusters", "readyShards")
	forget(t, s, "valkeynodes", "host")
	before, pods := podUIDs(s), s.Births(&corev1.PodList{})
	e.ReplaceManager(t)
	pass(t, s, 20*time.Second) // twice the slowest tick
	wantFewWrites(t, s, 30*time.Second)
	if err := pods.Want(0); err != nil {
		t.Error(err)
	}
	if after := podUIDs(s); !maps.Equal(before, after) {
		t.Errorf("the pods are %v, before they were %v", after, before)
	}
	for _, name := range []string{"c", "tls"} {
		if err := harness.Settled(s.Get(name)); err != nil {
			t.Errorf("cluster %s isn't well: %v", name, err)
		}
	}
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ReplicasPerShard = 0 })
	s.WaitActive("c")
	s.WaitFormed("c", 3, 0)
}

// pass lets the manager look at every cluster for a while.
func pass(t *testing.T, s *harness.Space, span time.Duration) {
	t.Helper()
	begin := time.Now()
	harness.Pause(t.Context(), span)
	passes, err := s.Passes(t.Context(), begin, s.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"c", "tls"} {
		if passes[name] == 0 {
			t.Errorf("the manager has not looked at cluster %s for %s: %v", name, span, passes)
		}
	}
}

// forget removes a field of the status from the CRD that is installed, as if the
// manager's version were the first to have it.
func forget(t *testing.T, s *harness.Space, resource, field string) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/%s"}]`, field)
	if r := s.RunKubectl(t.Context(), "", "patch", "crd", resource+"."+v1alpha1.Group, "--type=json", "-p", patch); r.Code != 0 {
		t.Fatal(r)
	}
	s.Eventually(resource+" has no "+field, time.Minute, func() error {
		if r := s.Kubectl("get", resource, "-o", "jsonpath={.items[*].status."+field+"}"); r.Code != 0 || r.Stdout != "" {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

// wantFewWrites wants the manager to write to no object of the namespace more than
// once for a while.
func wantFewWrites(t *testing.T, s *harness.Space, span time.Duration) {
	t.Helper()
	audit, local := s.Audit(t, "how often the manager writes what an older CRD drops")
	if !local {
		return
	}
	mark, err := audit.Mark()
	if err != nil {
		t.Fatal(err)
	}
	harness.Pause(t.Context(), span)
	entries, err := audit.Since(mark, harness.ManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	writes := map[string]int{}
	for _, entry := range entries {
		if entry.Writes() && entry.ObjectRef != nil && entry.ObjectRef.Namespace == s.Name {
			writes[entry.ObjectRef.Resource+" "+entry.ObjectRef.Name]++
		}
	}
	for object, n := range writes {
		if n > 1 {
			t.Errorf("the manager wrote %d times to %s in %s", n, object, span)
		}
	}
}
