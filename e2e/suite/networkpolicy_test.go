//go:build e2e

package suite

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// flow is a row of what networkpolicy --test prints as JSON.
type flow struct {
	From, To, Want, Got, Result, Detail string
	Port                                int
}

func tryOut(t *testing.T, s *harness.Space, code int) []flow {
	t.Helper()
	r := s.Valkey("networkpolicy", "c", "--egress", "--test", "-o", "json")
	var report struct{ Flows []flow }
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil || r.Code != code {
		t.Fatalf("want exit code %d: %s", code, r)
	}
	if len(report.Flows) != 12 {
		t.Errorf("%d flows were tried, want 12: %s", len(report.Flows), r)
	}
	return report.Flows
}

// startLabelled starts the client's pod with the label that policies admit.
func startLabelled(s *harness.Space, mount string) {
	pod := s.ClientPod("client", mount)
	pod.Labels = map[string]string{"valkey-client": "true"}
	s.Create(pod)
	s.Eventually("the client's pod runs", time.Minute, func() error {
		if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("its phase is %s", pod.Status.Phase)
		}
		return nil
	})
}

func valkey(t *testing.T, s *harness.Space, args ...string) {
	t.Helper()
	if r := s.Valkey(args...); r.Code != 0 {
		t.Fatal(r)
	}
}

// S0-65 to S0-73, N-03: in a namespace that is closed to everything in both
// directions, with the generated policies a cluster comes up, rolls and heals, each
// row of the matrix passes and nothing else does. Each flow that was blocked passes
// once the policies are gone: it was they that blocked it.
func TestNetworkPoliciesAllowTheMatrixAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, tls := range map[string]bool{"plaintext": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t).Space(t, 10)
			valkey(t, s, "networkpolicy", "c", "--egress", "--default-deny", "--apply")
			c := s.Cluster("c", 2, 1)
			var inPod, outside []string
			mount := ""
			if tls {
				mount, inPod, outside = "cert", encrypted, verified
				s.Create(s.TLSSecret("cert", harness.NewAuthority(t), s.Names("c")...))
				c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
			}
			s.Create(c)
			s.WaitActive("c")
			s.WaitFormed("c", 2, 1, inPod...)
			startLabelled(s, mount)
			s.WriteKeys("c", 50, outside...)

			for _, f := range tryOut(t, s, 0) {
				if f.Result != "ok" {
					t.Errorf("with the policies: %+v", f)
				}
			}
			valkey(t, s, "restart", "c", "--wait", "--timeout", "4m")
			lost := s.WaitFormed("c", 2, 1, inPod...)[0].Pod
			s.WantKeys("c", 50, outside...)
			s.Delete(&lost, client.GracePeriodSeconds(0))
			s.WaitActive("c")
			servers := s.WaitFormed("c", 2, 1, inPod...)
			for _, pod := range s.Pods("c") {
				if !pod.DeletionTimestamp.IsZero() {
					continue // what the roll has replaced
				}
				for _, status := range pod.Status.ContainerStatuses {
					if status.RestartCount > 0 || status.State.Terminated != nil {
						t.Errorf("pod %s did not stay alive: %+v", pod.Name, status)
					}
				}
			}

			checkListening(t, s, servers[0].Pod)

			valkey(t, s, "networkpolicy", "c", "--egress", "--default-deny", "--diff")
			if err := s.Client.DeleteAllOf(t.Context(), &networkingv1.NetworkPolicy{}, client.InNamespace(s.Name)); err != nil {
				t.Fatalf("delete the policies: %v", err)
			}
			if r := s.Valkey("networkpolicy", "c", "--diff"); r.Code != 1 || harness.Contains(r.Stdout, "+++ wanted/"+s.Name+"/c-valkey") != nil {
				t.Errorf("diff without policies: %s", r)
			}
			for _, f := range tryOut(t, s, 1) {
				if f.Got != "passes" {
					t.Errorf("without any policy: %+v", f)
				}
			}
		})
	}
}

// checkListening wants two ports to listen in a pod, and no more (S0-37).
func checkListening(t *testing.T, s *harness.Space, pod corev1.Pod) {
	t.Helper()
	table, err := s.Exec(t.Context(), s.Name, pod.Name, "", "cat", "/proc/net/tcp", "/proc/net/tcp6")
	if err != nil {
		t.Fatal(err)
	}
	const listening = "0A"
	ports := map[uint64]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Fields(line)
		if len(cells) < 4 || cells[3] != listening {
			continue
		}
		_, port, _ := strings.Cut(cells[1], ":")
		n, err := strconv.ParseUint(port, 16, 16)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		ports[n] = true
	}
	if len(ports) != 2 || !ports[6379] || !ports[16379] {
		t.Errorf("in pod %s listen %v, want 6379 and 16379", pod.Name, ports)
	}
}

// S0-46, S0-47, S0-75: under the generated policy for its own pods, which denies all
// ingress, the manager does all it has to, in every namespace.
func TestManagerWorksUnderItsPolicy(t *testing.T) {
	e := harness.Start(t)
	a, b := e.Space(t, 6), e.Space(t, 2)
	valkey(t, a, "networkpolicy", "--manager", "--apply")
	t.Cleanup(func() {
		p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: harness.ManagerNamespace, Name: "valkey-operator"}}
		if err := client.IgnoreNotFound(e.Client.Delete(a.Background(), p)); err != nil {
			t.Errorf("delete the manager's policy: %v", err)
		}
	})
	// Its connections to the API server begin anew under the policy.
	e.ReplaceManager(t)
	tls := a.Cluster("c", 2, 1)
	a.Create(a.TLSSecret("cert", harness.NewAuthority(t), a.Names("c")...))
	tls.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	a.Create(tls)
	b.Create(b.Cluster("c", 1, 0))
	a.WaitActive("c")
	b.WaitActive("c")
	a.WaitFormed("c", 2, 1, encrypted...)
	lost := a.Pods("c")[0]
	a.Delete(&lost, client.GracePeriodSeconds(0))
	a.WaitActive("c")
	a.WaitFormed("c", 2, 1, encrypted...)
	b.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ReplicasPerShard = 1 })
	b.WaitActive("c")
	b.WaitFormed("c", 1, 1)
}

// S0-79 to S0-86: when the manager can't reach 6379, a cluster goes on serving, a
// condition says so within a minute, a new cluster does not come up, and a lost
// primary is followed by its replica without being replaced. All of it is made good
// when the flow is open again.
func TestManagerThatIsBlockedShowsAndCatchesUp(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 10)
	s.Create(s.Cluster("c", 3, 1))
	s.WaitActive("c")
	servers := s.WaitFormed("c", 3, 1)
	startLabelled(s, "")
	s.WriteKeys("c", 100)

	for _, name := range []string{"c", "new"} {
		valkey(t, s, "networkpolicy", name, "--manager-namespace", "nowhere", "--apply")
	}
	// Policies are for new connections; open ones stay.
	hangUp := func(pod string) error {
		_, err := s.Exec(t.Context(), s.Name, pod, "", "valkey-cli", "CLIENT", "KILL", "USER", "_momento_operator")
		return err
	}
	for _, server := range servers {
		if err := hangUp(server.Pod.Name); err != nil {
			t.Fatal(err)
		}
	}
	s.WaitCondition("c", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNodeUnreachable, "6379")
	s.WantKeys("c", 100)
	if r := s.Valkey("status", "c"); r.Code != 1 || harness.Contains(r.Stdout, "NodeUnreachable") != nil {
		t.Errorf("status does not say it: %s", r)
	}

	s.Create(s.Cluster("new", 1, 0))
	var primary corev1.Pod
	for _, server := range servers {
		if server.Self().Role == topology.RolePrimary {
			primary = server.Pod
		}
	}
	s.Delete(&primary, client.GracePeriodSeconds(0))
	s.WriteKeys("c", 100)
	s.WantKeys("c", 100)
	if got := harness.Condition(s.Get("c"), v1alpha1.ConditionReady); got.Status == metav1.ConditionTrue {
		t.Errorf("cluster c is ready while the manager is blocked: %s", got.Message)
	}
	// A network plugin applies policies to a new pod a moment after its start, in which
	// a quick manager gets through, and stays.
	s.Eventually("the new cluster is not ready", time.Minute, func() error {
		got := harness.Condition(s.Get("new"), v1alpha1.ConditionReady)
		if got.Status != metav1.ConditionTrue {
			return nil
		}
		for _, pod := range s.Pods("new") {
			if err := hangUp(pod.Name); err != nil {
				return err
			}
		}
		return fmt.Errorf("it is: %s", got.Message)
	})

	for _, name := range []string{"c", "new"} {
		valkey(t, s, "networkpolicy", name, "--apply")
		s.WaitActive(name)
	}
	s.WaitFormed("c", 3, 1)
	s.WantKeys("c", 100)
}
