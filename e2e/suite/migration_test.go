//go:build e2e

package suite

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// job is what a server tells of one migration of slots. Times are whole seconds.
type job struct {
	Name       string `json:"name"`
	Operation  string `json:"operation"`
	Slots      string `json:"slot_ranges"`
	Target     string `json:"target_node"`
	Created    int64  `json:"create_time"`
	LastUpdate int64  `json:"last_update_time"`
	State      string `json:"state"`
	Message    string `json:"message"`
}

// exports are the migrations that a server was the source of, the oldest first.
func exports(t *testing.T, s *harness.Space, pod corev1.Pod) ([]job, error) {
	t.Helper()
	out, err := s.Exec(t.Context(), s.Name, pod.Name, "", "valkey-cli", "--json", "CLUSTER", "GETSLOTMIGRATIONS")
	if err != nil {
		return nil, err
	}
	var jobs []job
	if err := json.Unmarshal([]byte(out), &jobs); err != nil {
		return nil, fmt.Errorf("pod %s tells of its migrations %q: %w", pod.Name, out, err)
	}
	slices.Reverse(jobs)
	return slices.DeleteFunc(jobs, func(j job) bool { return j.Operation != "EXPORT" }), nil
}

// ports lets pods be reached on ports alone, and from some places only, or from
// everywhere if there is none.
func ports(from []networkingv1.NetworkPolicyPeer, numbers ...int32) networkingv1.NetworkPolicyIngressRule {
	rule := networkingv1.NetworkPolicyIngressRule{From: from}
	for _, n := range numbers {
		port := intstr.FromInt32(n)
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: &port})
	}
	return rule
}

// closed returns a policy that lets nothing reach some pods but what the rules say.
func closed(s *harness.Space, name string, pods map[string]string, rules ...networkingv1.NetworkPolicyIngressRule) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Name, Name: name},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: pods}, Ingress: rules,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
}

// S-03: slots that can't be moved are reported in the server's words, once, tried
// again more and more rarely, and hold up no other shard. When the way is free
// again they move without a hand.
func TestAFailingMigrationIsReportedAndTriedMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	const keys = 600
	s := harness.Start(t).Space(t, 5)
	c := s.Cluster("c", 3, 0)
	ownConfig(s, c)
	// An attempt that gets no answer is given up after it.
	change(s, func(spec *v1alpha1.ValkeyConfigSpec) {
		spec.Valkey = map[string]v1alpha1.SettingValue{"repl-timeout": "5"}
	})
	s.Create(c)
	s.WaitActive("c")
	s.StartClient("")
	s.WriteKeys("c", keys)
	source := pick(t, s.WaitFormed("c", 3, 0), topology.RolePrimary, 0)
	blocked := closed(s, "new-shard", map[string]string{v1alpha1.LabelShardIndex: "3"}, ports(nil, 16379), ports([]networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: harness.ManagerNamespace}}},
		{PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: v1alpha1.LabelShardIndex, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"0"}},
		}}},
	}, 6379))
	s.Create(blocked)
	history := s.History()
	resize(s, shape{4, 0})

	const attempts = 3
	var failed []job
	s.Eventually("the migration has failed three times", 5*time.Minute, func() error {
		jobs, err := exports(t, s, source.Pod)
		failed = slices.DeleteFunc(jobs, func(j job) bool { return j.State != "failed" })
		if err == nil && len(failed) < attempts {
			err = fmt.Errorf("it failed %d times: %+v", len(failed), jobs)
		}
		return err
	})
	for i, f := range failed[:attempts] {
		t.Logf("attempt %d at %d: %s", i+1, f.Created, f.Message)
		s.Eventually(fmt.Sprintf("attempt %d shows in the condition", i+1), 15*time.Second, func() error {
			return history.Find(func(c *v1alpha1.ValkeyCluster) error {
				got := harness.Condition(c, v1alpha1.ConditionProgressing)
				if got.Reason != v1alpha1.ReasonMigrationFailed {
					return fmt.Errorf("the reason is %s: %s", got.Reason, got.Message)
				}
				return harness.Contains(got.Message, f.Message, source.Pod.Name, fmt.Sprintf("(attempt %d,", i+1))
			})
		})
	}
	target := pick(t, mustAsk(t, s), topology.RolePrimary, 3)
	if n := target.Self().Slots.Len(); n < 2*1365 {
		t.Errorf("the new shard owns %d slots: a source that fails holds up the others", n)
	}

	s.Delete(blocked)
	s.WaitActive("c")
	checkEven(t, s.WaitFormed("c", 4, 0), 4)
	s.WantKeys("c", keys)
	jobs, err := exports(t, s, source.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) <= attempts || jobs[len(jobs)-1].State != "success" {
		t.Fatalf("the source moved its slots in another way: %+v", jobs)
	}
	for i, least := range []int64{5, 10, 20} {
		if gap := jobs[i+1].Created - jobs[i].LastUpdate; gap < least {
			t.Errorf("attempt %d came %d s after the failure before it, want %d at least", i+2, gap, least)
		}
	}
	events := s.WaitEvents("c", v1alpha1.ReasonMigrationFailed, 1)
	if events[0].Type != corev1.EventTypeWarning || events[0].Count > 1 || events[0].Series != nil {
		t.Fatalf("the failure is told more than once, or in another way: %+v", events)
	}
	if err := harness.Contains(events[0].Message, failed[0].Message); err != nil {
		t.Error(err)
	}
}

// mustAsk asks every server of cluster c, however they are.
func mustAsk(t *testing.T, s *harness.Space) []harness.Server {
	t.Helper()
	servers, err := s.Servers("c")
	if err != nil {
		t.Fatal(err)
	}
	return servers
}

// S-09: a primary is lost while it gives slots away. Its replica takes over, the
// move is planned anew from there, each slot ends with one owner in everybody's
// eyes, and no key is lost.
func TestAPrimaryIsLostInTheMiddleOfAMigration(t *testing.T) {
	t.Parallel()
	const keys = 100_000
	s := harness.Start(t).Space(t, 10)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	// It writes the keys, then nothing, and reads them back in the end.
	w := s.StartWriter("c", patient, "--preload", fmt.Sprint(keys), "--every", "1h")
	source := pick(t, s.WaitFormed("c", 3, 1), topology.RolePrimary, 0)
	// A millisecond for each of some 8000 keys makes seconds of a moment.
	if _, err := s.Exec(t.Context(), s.Name, source.Pod.Name, "", "valkey-cli", "CONFIG", "SET", "rdb-key-save-delay", "1000"); err != nil {
		t.Fatal(err)
	}
	resize(s, shape{4, 1})
	s.Eventually("the source is in the middle of its export", 2*time.Minute, func() error {
		jobs, err := exports(t, s, source.Pod)
		if err == nil && (len(jobs) == 0 || jobs[len(jobs)-1].State != "snapshotting") {
			err = fmt.Errorf("its migrations are %+v", jobs)
		}
		return err
	})
	deletePod(s, source.Pod, client.GracePeriodSeconds(0))

	waitReplaced(s, source.Pod.Name)
	s.WaitActive("c")
	servers := s.WaitFormed("c", 4, 1)
	checkEven(t, servers, 4)
	heir, target := pick(t, servers, topology.RolePrimary, 0), pick(t, servers, topology.RolePrimary, 3)
	jobs, err := exports(t, s, heir.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(jobs, func(j job) bool { return j.State == "success" && j.Target == target.ID }) {
		t.Errorf("the promoted replica has moved no slots to the new shard: %+v", jobs)
	}
	there := 0
	for _, server := range servers {
		if server.Self().Role == topology.RolePrimary {
			there += server.Keys()
		}
	}
	if there != keys {
		t.Errorf("the primaries hold %d keys, want %d", there, keys)
	}
	w.WantNothingLost(w.Stop(), false)
}
