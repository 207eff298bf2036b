//go:build e2e

package suite

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// shape of a cluster.
type shape struct{ shards, replicas int32 }

func (s shape) nodes() int { return int(s.shards * (s.replicas + 1)) }

func (s shape) String() string { return fmt.Sprintf("%dx%d", s.shards, s.replicas) }

// B-01, B-02.
func TestBootstrapOfEveryShapeEndsActive(t *testing.T) {
	t.Parallel()
	for _, want := range []shape{{1, 0}, {3, 1}, {6, 0}, {2, 2}} {
		t.Run(want.String(), func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t).Space(t, want.nodes()+1)
			births := s.Births(&v1alpha1.ValkeyNodeList{})
			s.Create(s.Cluster("c", want.shards, want.replicas))
			c := s.WaitActive("c")
			servers := s.WaitFormed("c", int(want.shards), int(want.replicas))
			if err := births.Want(want.nodes()); err != nil {
				t.Errorf("ValkeyNodes made: %v", err)
			}
			checkStatus(t, c, servers, want)
			checkColumns(t, s, want)
			checkSpread(t, s, servers)
			checkPods(t, s)
			checkObjects(t, s, want)
			checkPasswords(t, s)
			checkStatusCommand(t, s, c, want)
			checkEvents(t, s)

			s.StartClient("")
			s.WriteKeys("c", 300)
			s.WantKeys("c", 300)
		})
	}
}

// checkStatus compares what the manager says with what the servers say.
func checkStatus(t *testing.T, c *v1alpha1.ValkeyCluster, servers []harness.Server, want shape) {
	t.Helper()
	st := c.Status
	if st.ShardCount != want.shards || st.ReadyShards != want.shards || st.Ready != fmt.Sprintf("%d/%d", want.nodes(), want.nodes()) {
		t.Errorf("status counts shardCount=%d readyShards=%d ready=%s of %s", st.ShardCount, st.ReadyShards, st.Ready, want)
	}
	if endpoint := "c." + c.Namespace + ".svc.cluster.local:6379"; st.Endpoint != endpoint {
		t.Errorf("status.endpoint is %q, want %q", st.Endpoint, endpoint)
	}
	if st.TargetSpec != nil {
		t.Errorf("an Active cluster still has status.targetSpec %+v", *st.TargetSpec)
	}
	if len(st.Nodes) != want.nodes() || len(st.Shards) != int(want.shards) {
		t.Fatalf("status lists %d nodes and %d shards of %s", len(st.Nodes), len(st.Shards), want)
	}
	if len(c.Finalizers) != 0 {
		t.Errorf("the cluster has finalizers: %v", c.Finalizers)
	}
	byID := map[string]harness.Server{}
	for _, server := range servers {
		byID[server.ID] = server
	}
	for _, server := range servers {
		self, shard := server.Self(), st.Shards[server.Shard()]
		if self.PrimaryID != "" {
			if !strings.Contains(strings.Join(shard.Replicas, " "), server.Pod.Name) {
				t.Errorf("status lists %v as replicas of shard %d, not %s", shard.Replicas, shard.Index, server.Pod.Name)
			}
			continue
		}
		if shard.Primary != server.Pod.Name || shard.Slots != self.Slots.String() || int(shard.SlotCount) != self.Slots.Len() {
			t.Errorf("status says of shard %d: %+v; its primary %s owns %s", shard.Index, shard, server.Pod.Name, self.Slots)
		}
	}
}

// checkColumns looks at what `kubectl get vkc` prints.
func checkColumns(t *testing.T, s *harness.Space, want shape) {
	t.Helper()
	r := s.Kubectl("get", "vkc", "c")
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if len(lines) != 2 {
		t.Fatalf("want a header and a line: %s", r)
	}
	if got := strings.Join(strings.Fields(lines[0]), " "); got != "NAME CONFIG SHARDS REPLICAS STATE READY AGE" {
		t.Errorf("the columns are %q", got)
	}
	n := want.nodes()
	prefix := fmt.Sprintf("c %s %d %d Active %d/%d ", harness.ConfigName, want.shards, want.replicas, n, n)
	if got := strings.Join(strings.Fields(lines[1]), " "); !strings.HasPrefix(got, prefix) {
		t.Errorf("the columns show %q, want %q", got, prefix)
	}
}

// checkSpread wants the nodes of each shard in zones of their own.
func checkSpread(t *testing.T, s *harness.Space, servers []harness.Server) {
	t.Helper()
	zones := map[string]string{}
	var nodes corev1.NodeList
	if err := s.Client.List(t.Context(), &nodes); err != nil {
		t.Fatalf("list nodes: %v", err)
	}
	distinct := map[string]bool{}
	for _, n := range nodes.Items {
		zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
		distinct[zones[n.Name]] = true
	}
	if len(distinct) < 3 {
		s.CannotCheck(t, "the spread over zones, which takes three of them")
		return
	}
	at := map[string]string{}
	for _, server := range servers {
		place := fmt.Sprintf("shard %d in zone %s", server.Shard(), zones[server.Pod.Spec.NodeName])
		if other, taken := at[place]; taken {
			t.Errorf("pods %s and %s are both of %s", other, server.Pod.Name, place)
		}
		at[place] = server.Pod.Name
	}
}

// checkPods looks at what Kubernetes and the API server made of the pods.
func checkPods(t *testing.T, s *harness.Space) {
	t.Helper()
	for _, pod := range s.Pods("c") {
		if !harness.HasCondition(&pod, v1alpha1.InSyncGate) {
			t.Errorf("pod %s of an Active cluster: its gate is not open", pod.Name)
		}
		if pod.Status.QOSClass == "" || pod.Spec.RestartPolicy != corev1.RestartPolicyNever || pod.Spec.Subdomain != "c" {
			t.Errorf("pod %s: restart policy %s, subdomain %q", pod.Name, pod.Spec.RestartPolicy, pod.Spec.Subdomain)
		}
		memory := pod.Spec.Containers[0].Resources.Limits.Memory()
		if memory.Cmp(resource.MustParse("128Mi")) != 0 {
			t.Errorf("pod %s has a memory limit of %s", pod.Name, memory)
		}
	}
	// The gate is the manager's to open; its kubelet says afterwards that a pod is ready.
	s.Eventually("every pod is ready", harness.ActiveWithin, func() error {
		for _, pod := range s.Pods("c") {
			if !harness.HasCondition(&pod, corev1.PodReady) {
				return fmt.Errorf("pod %s is not", pod.Name)
			}
		}
		return nil
	})
}

// checkStatusCommand runs `kubectl valkey status` as a person would.
func checkStatusCommand(t *testing.T, s *harness.Space, c *v1alpha1.ValkeyCluster, want shape) {
	t.Helper()
	r := s.Valkey("status", "c")
	if r.Code != 0 || r.Stderr != "" {
		t.Fatalf("status of a healthy cluster: %s", r)
	}
	n := want.nodes()
	words := append([]string{"Active", fmt.Sprintf("%d/%d", n, n), harness.ConfigName}, c.Status.Nodes...)
	if err := harness.Contains(r.Stdout, words...); err != nil {
		t.Errorf("status: %v", err)
	}
	if strings.Contains(r.Stdout, "\x1b") {
		t.Errorf("status colors a pipe: %q", r.Stdout)
	}
}

// checkEvents wants nothing alarming in a bootstrap, and its end said once.
func checkEvents(t *testing.T, s *harness.Space) {
	t.Helper()
	for _, e := range s.Events() {
		// A kubelet says so when this machine is too busy for it.
		busy := e.Source.Component == "kubelet" && strings.Contains(e.Message, "timed out")
		if e.Type == corev1.EventTypeWarning && !busy {
			t.Errorf("Warning about %s %s: %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	s.WaitEvents("c", v1alpha1.ReasonActive, 1)
}
