//go:build e2e

package suite

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// U-07: with two zones, each of which has to have one node of each shard, a roll
// finds room for every replacement and ends spread. S-07: a shard that finds no room
// holds up nothing, and goes again when it is no longer wished.
func TestARollStaysSpreadAndAShardWithoutRoomGoesAgain(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 8)
	zones := someZones(t, s, 2)
	label := "kubectl-valkey-e2e/" + s.Name
	labelNodes(t, s, label)
	c := s.Cluster("c", 3, 1)
	c.Spec.Placement = &v1alpha1.Placement{Zones: zones, ZoneSpread: v1alpha1.ZoneSpreadRequired, NodeSelector: map[string]v1alpha1.NodeLabelValue{label: "here"}}
	ownConfig(s, c)
	s.Create(c)
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1)
	wantSpread(t, s, zones)

	before := podUIDs(s)
	change(s, func(spec *v1alpha1.ValkeyConfigSpec) {
		memory := resource.MustParse("96Mi")
		spec.Resources = &v1alpha1.Resources{Memory: &memory}
	})
	s.Eventually("every pod is replaced", 4*time.Minute, func() error {
		left := 0
		for _, p := range s.Pods("c") {
			if _, old := before[p.Name]; old {
				left++
			}
			if p.Status.Phase == corev1.PodPending && time.Since(p.CreationTimestamp.Time) > time.Minute {
				t.Errorf("pod %s has been pending for a minute: %+v", p.Name, p.Status.Conditions)
			}
		}
		if left > 0 {
			return fmt.Errorf("%d are left: %s", left, s.Get("c").Status.Message)
		}
		return nil
	})
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1)
	wantSpread(t, s, zones)

	unlabelNodes(t, s, label)
	rolled := podUIDs(s)
	resize(s, shape{4, 1})
	s.Eventually("the fourth shard finds no room", time.Minute, func() error {
		pending := 0
		for _, p := range s.Pods("c") {
			if _, old := rolled[p.Name]; !old && unschedulable(p) {
				pending++
			}
		}
		if pending != 2 {
			return fmt.Errorf("%d pods are unschedulable, want 2", pending)
		}
		return nil
	})
	resize(s, shape{3, 1})
	begin := time.Now()
	s.Eventually("it goes again", time.Minute, func() error {
		if nodes, pods := len(s.Nodes("c")), len(s.Pods("c")); nodes != 6 || pods != 6 {
			return fmt.Errorf("there are %d ValkeyNodes and %d pods: %s", nodes, pods, s.Get("c").Status.Message)
		}
		return harness.Settled(s.Get("c"))
	})
	t.Logf("gone after %s", time.Since(begin).Round(100*time.Millisecond))
	s.WaitFormed("c", 3, 1)
	for pod, uid := range podUIDs(s) {
		if rolled[pod] != uid {
			t.Errorf("pod %s is a new one", pod)
		}
	}
}

// someZones are the first zones that the Kubernetes nodes have.
func someZones(t *testing.T, s *harness.Space, n int) []string {
	t.Helper()
	var zones []string
	for zone := range hostsByZone(t, s) {
		zones = append(zones, zone)
	}
	if len(zones) < n {
		t.Fatalf("the Kubernetes nodes are in %d zones, this needs %d", len(zones), n)
	}
	return zones[:n]
}

func hostsByZone(t *testing.T, s *harness.Space) map[string][]string {
	t.Helper()
	var nodes corev1.NodeList
	if err := s.Client.List(t.Context(), &nodes); err != nil {
		t.Fatalf("list nodes: %v", err)
	}
	out := map[string][]string{}
	for _, n := range nodes.Items {
		zone := n.Labels[corev1.LabelTopologyZone]
		out[zone] = append(out[zone], n.Name)
	}
	return out
}

// wantSpread wants a pod of each shard in each of the zones.
func wantSpread(t *testing.T, s *harness.Space, zones []string) {
	t.Helper()
	zoneOf := map[string]string{}
	for zone, hosts := range hostsByZone(t, s) {
		for _, host := range hosts {
			zoneOf[host] = zone
		}
	}
	pods := map[string]int{}
	for _, p := range s.Pods("c") {
		if p.DeletionTimestamp.IsZero() {
			pods[p.Labels[v1alpha1.LabelShardIndex]+" in zone "+zoneOf[p.Spec.NodeName]]++
		}
	}
	for shard := range 3 {
		for _, zone := range zones {
			if n := pods[fmt.Sprintf("%d in zone %s", shard, zone)]; n != 1 {
				t.Errorf("shard %d has %d pods in zone %s, want one: %v", shard, n, zone, pods)
			}
		}
	}
}

func unschedulable(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// unlabelNodes takes back what labelNodes did.
func unlabelNodes(t *testing.T, s *harness.Space, label string) {
	t.Helper()
	if r := s.RunKubectl(t.Context(), "", "label", "nodes", "--all", label+"-"); r.Code != 0 {
		t.Fatal(r)
	}
}
