//go:build e2e

package suite

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// The poller of the next test notices each kind of wrong answer.
func TestThePollerNoticesWrongAnswers(t *testing.T) {
	right := map[string][]string{"aa": {"10.0.0.1:6379", "shard-0.valkey.test:31000"}}
	slots := `[[0,16383,[%s,"aa",{"hostname":"x"}]]]`
	shards := `[{"slots":[0,16383],"nodes":[{"id":"aa","ip":"10.0.0.1",%s}]}]`
	for answer, bad := range map[string]bool{
		fmt.Sprintf(slots, `"10.0.0.1",6379`):              false,
		fmt.Sprintf(slots, `"shard-0.valkey.test",31000`):  false,
		fmt.Sprintf(slots, `"10.0.0.1",31000`):             true,
		fmt.Sprintf(slots, `"shard-0.valkey.test",6379`):   true,
		fmt.Sprintf(slots, `"shard-1.valkey.test",31000`):  true,
		fmt.Sprintf(slots, `"?",6379`):                     true,
		fmt.Sprintf(slots, `null,31000`):                   true,
		fmt.Sprintf(slots, `"10.0.0.1",0`):                 true,
		fmt.Sprintf(slots, `"elsewhere.valkey.test",6379`): true,
	} {
		if got := harness.JudgeShown(right, "slots", answer); (len(got) > 0) != bad {
			t.Errorf("%s: %v", answer, got)
		}
	}
	for answer, bad := range map[string]bool{
		fmt.Sprintf(shards, `"port":6379,"endpoint":"10.0.0.1"`):                 false,
		fmt.Sprintf(shards, `"tls-port":31000,"endpoint":"shard-0.valkey.test"`): false,
		fmt.Sprintf(shards, `"port":31000,"endpoint":"10.0.0.1"`):                true,
		fmt.Sprintf(shards, `"port":6379,"endpoint":"?"`):                        true,
	} {
		if got := harness.JudgeShown(right, "shards", answer); (len(got) > 0) != bad {
			t.Errorf("%s: %v", answer, got)
		}
	}
}

// S1-63, S1-64, S1-103 to S1-105, E-14: whatever is edited in whatever order, no
// client is ever given a wrong address, and only turning it on and off replaces
// nodes, once each.
func TestNoClientSeesAWrongAddressWhileAccessTurnsOnAndOff(t *testing.T) {
	for _, encryption := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", encryption), func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t).Space(t, 6)
			c := s.Cluster("c", 2, 1)
			var args []string
			if encryption {
				s.Create(s.TLSSecret("cert", harness.NewAuthority(t), append(s.Names("c"), "*."+outsideDomain)...))
				c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
				args = encrypted
			}
			s.Create(c)
			s.WaitActive("c")
			poller := s.Poll("c", args...)
			rounds := 1
			if harness.Full() {
				rounds = 10
			}
			for range rounds {
				turn(t, s)
			}
			answers, wrong := poller.Stop()
			for _, w := range wrong {
				t.Error(w)
			}
			if answers < 1000 {
				t.Errorf("only %d answers were looked at", answers)
			}
			t.Logf("%d answers were looked at", answers)
		})
	}
}

// turn turns external access on in one edit, changes all that is changed live, and
// turns it off in one edit.
func turn(t *testing.T, s *harness.Space) {
	t.Helper()
	births := s.Births(&v1alpha1.ValkeyNodeList{})
	begin := time.Now()
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ExternalAccess = names() })
	waitOutside(s, "clients are directed to the outside names")
	t.Logf("on after %s", time.Since(begin).Round(100*time.Millisecond))
	if err := births.Want(4); err != nil {
		t.Errorf("turning on: %v", err)
	}
	before := podUIDs(s)
	for _, change := range []struct {
		words string
		edit  func(*v1alpha1.ExternalAccess)
	}{
		{"addresses inside", func(a *v1alpha1.ExternalAccess) { a.PreferredEndpointType = v1alpha1.EndpointIP }},
		{"outside names", func(a *v1alpha1.ExternalAccess) { a.PreferredEndpointType = v1alpha1.EndpointHostname }},
		{"outside names", func(a *v1alpha1.ExternalAccess) { a.HostnamePrefix = "cache" }},
		{"addresses inside", func(a *v1alpha1.ExternalAccess) { a.Domain, a.PreferredEndpointType = "", v1alpha1.EndpointIP }},
		{"outside names", func(a *v1alpha1.ExternalAccess) {
			a.Domain, a.PreferredEndpointType = outsideDomain, v1alpha1.EndpointHostname
		}},
	} {
		s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { change.edit(spec.ExternalAccess) })
		waitOutside(s, change.words)
	}
	for pod, uid := range podUIDs(s) {
		if before[pod] != uid {
			t.Errorf("pod %s was replaced for what is changed live", pod)
		}
	}
	begin = time.Now()
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ExternalAccess = nil })
	s.Eventually("nothing is left of external access", 4*time.Minute, func() error { return inside(s) })
	t.Logf("off after %s", time.Since(begin).Round(100*time.Millisecond))
	if err := births.Want(8); err != nil {
		t.Errorf("turning on and off: %v", err)
	}
}

// inside returns what is left of external access.
func inside(s *harness.Space) error {
	c := s.Get("c")
	if err := harness.Settled(c); err != nil {
		return err
	}
	if got := harness.Condition(c, v1alpha1.ConditionExternalAccessReady); got.Type != "" || len(c.Status.ExternalEndpoints) > 0 {
		return fmt.Errorf("%s: %s", got.Reason, got.Message)
	}
	for _, n := range s.Nodes("c") {
		if a := n.Status.Applied; n.Spec.External || a != nil && a.Announcement != nil && a.Announcement.ClientPort != 0 {
			return fmt.Errorf("node %s still has something of it", n.Name)
		}
	}
	var services corev1.ServiceList
	if err := s.Client.List(s.Context(), &services, client.InNamespace(s.Name), client.HasLabels{v1alpha1.LabelShardIndex}); err != nil {
		return err
	}
	if n := len(services.Items); n > 0 {
		return fmt.Errorf("%d Services are left", n)
	}
	return nil
}
