//go:build e2e

package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// ownConfig publishes a config of the test's own that builds on the suite's.
func ownConfig(s *harness.Space, c *v1alpha1.ValkeyCluster) {
	name := s.Name + "-config"
	s.Publish(config(name, v1alpha1.ValkeyConfigSpec{BaseRef: c.Spec.ConfigRef}))
	c.Spec.ConfigRef = name
}

// change edits the config that ownConfig published.
func change(s *harness.Space, how func(*v1alpha1.ValkeyConfigSpec)) { editConfig(how)(s, s.Name) }

func podUIDs(s *harness.Space) map[string]types.UID {
	out := map[string]types.UID{}
	for _, p := range s.Pods("c") {
		out[p.Name] = p.UID
	}
	return out
}

// waitRolled waits until no pod is left of those that were there.
func waitRolled(s *harness.Space, before map[string]types.UID) {
	s.Eventually("every pod is replaced", 4*time.Minute, func() error {
		var left []string
		for name := range podUIDs(s) {
			if _, ok := before[name]; ok {
				left = append(left, name)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%v are left: %s", left, s.Get("c").Status.Message)
		}
		return nil
	})
}

// U-01, U-03, U-08: what a running server takes is applied live; what it doesn't
// replaces one node after the other, and no key is lost.
func TestAConfigChangeIsAppliedLiveOrRolls(t *testing.T) {
	t.Parallel()
	const keys = 600
	s := harness.Start(t).Space(t, 8)
	c := s.Cluster("c", 3, 1)
	ownConfig(s, c)
	s.Create(c)
	s.WaitActive("c")
	s.StartClient("")
	s.WriteKeys("c", keys)
	before := podUIDs(s)

	change(s, func(spec *v1alpha1.ValkeyConfigSpec) {
		spec.Valkey = map[string]v1alpha1.SettingValue{"maxmemory-policy": "volatile-ttl"}
	})
	s.Eventually("the setting is in force on every server", time.Minute, func() error {
		for _, pod := range s.Pods("c") {
			got, err := s.Exec(t.Context(), s.Name, pod.Name, "", "valkey-cli", "config", "get", "maxmemory-policy")
			if err != nil || !strings.Contains(got, "volatile-ttl") {
				return fmt.Errorf("%s says %q: %w", pod.Name, got, err)
			}
		}
		return nil
	})
	for pod, uid := range podUIDs(s) {
		if before[pod] != uid {
			t.Errorf("pod %s was replaced for a setting that is taken at run time", pod)
		}
	}

	change(s, func(spec *v1alpha1.ValkeyConfigSpec) { spec.Valkey["maxmemory-policy"] = "no-such-policy" })
	s.WaitCondition("c", v1alpha1.ConditionConfigResolved, metav1.ConditionFalse, v1alpha1.ReasonSettingRejected, "maxmemory-policy", "no-such-policy")
	change(s, func(spec *v1alpha1.ValkeyConfigSpec) { spec.Valkey["maxmemory-policy"] = "allkeys-lfu" })
	s.WaitCondition("c", v1alpha1.ConditionConfigResolved, metav1.ConditionTrue, v1alpha1.ReasonResolved)

	begin := time.Now()
	births := s.Births(&v1alpha1.ValkeyNodeList{})
	change(s, func(spec *v1alpha1.ValkeyConfigSpec) {
		memory := resource.MustParse("96Mi")
		spec.Resources = &v1alpha1.Resources{Memory: &memory}
	})
	waitRolled(s, before)
	s.WaitActive("c")
	t.Logf("six nodes rolled in %s", time.Since(begin).Round(100*time.Millisecond))
	s.WaitFormed("c", 3, 1)
	s.WantKeys("c", keys)
	if err := births.Want(6); err != nil {
		t.Error(err)
	}
	for _, p := range s.Pods("c") {
		if got := p.Spec.Containers[0].Resources.Limits.Memory().String(); got != "96Mi" {
			t.Errorf("pod %s has %s of memory", p.Name, got)
		}
	}
}

// U-05: an image that does not exist stops at the first pod, which says why, and
// the cluster serves on; setting it back heals without a hand.
func TestABadImageStopsAtTheFirstPod(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 5)
	c := s.Cluster("c", 2, 1)
	ownConfig(s, c)
	good, bad := s.Name+"-good", s.Name+"-bad"
	s.Publish(image(s, good, s.ValkeyImage.Version))
	broken := image(s, bad, s.ValkeyImage.Version)
	broken.Spec.Tag = "no-such-tag"
	s.Publish(broken)
	change(s, func(spec *v1alpha1.ValkeyConfigSpec) { spec.ImageRef = good })
	s.Create(c)
	s.WaitActive("c")
	before := podUIDs(s)

	change(s, func(spec *v1alpha1.ValkeyConfigSpec) { spec.ImageRef = bad })
	s.WaitCondition("c", v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaiting, "no-such-tag")
	after := podUIDs(s)
	if len(after) != len(before)+1 {
		t.Errorf("%d pods, want one more than %d", len(after), len(before))
	}
	for pod, uid := range before {
		if after[pod] != uid {
			t.Errorf("pod %s went although its replacement never came up", pod)
		}
	}
	change(s, func(spec *v1alpha1.ValkeyConfigSpec) { spec.ImageRef = good })
	s.Eventually("the pod with the bad image is taken back", time.Minute, func() error {
		if now := podUIDs(s); len(now) != len(before) {
			return fmt.Errorf("%d pods", len(now))
		}
		return nil
	})
	s.WaitActive("c")
	s.WaitFormed("c", 2, 1)
}

// F-03: without a majority of primaries the servers can't elect; the manager
// takes over for them.
func TestAPrimaryIsFollowedWithoutAMajority(t *testing.T) {
	t.Parallel()
	const keys = 100
	s := harness.Start(t).Space(t, 4)
	s.Create(s.Cluster("c", 1, 2))
	s.WaitActive("c")
	s.StartClient("")
	s.WriteKeys("c", keys)
	for _, loss := range []string{"its pod is deleted by force", "its server is killed"} {
		victim := pick(t, s.WaitFormed("c", 1, 2), topology.RolePrimary, 0)
		begin := time.Now()
		if loss == "its server is killed" {
			if err := s.KillServer(t.Context(), victim.Pod); err != nil {
				t.Fatal(err)
			}
		} else {
			deletePod(s, victim.Pod, client.GracePeriodSeconds(0))
		}
		s.Eventually("another node is the primary", time.Minute, func() error {
			shards := s.Get("c").Status.Shards
			if len(shards) != 1 || shards[0].Primary == "" || shards[0].Primary == victim.Pod.Name {
				return fmt.Errorf("shards are %+v", shards)
			}
			return nil
		})
		t.Logf("%s: followed after %s", loss, time.Since(begin).Round(100*time.Millisecond))
		s.WaitActive("c")
		s.WaitFormed("c", 1, 2)
		s.WantKeys("c", keys)
	}
}

// A shard without any copy left gets an empty node, and everybody is told until
// somebody acknowledges it.
func TestTheLossOfEveryCopyIsRepairedAndReported(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 5)
	s.Create(s.Cluster("c", 3, 0))
	s.WaitActive("c")
	victim := pick(t, s.WaitFormed("c", 3, 0), topology.RolePrimary, 1)
	if err := s.KillServer(t.Context(), victim.Pod); err != nil {
		t.Fatal(err)
	}
	s.WaitCondition("c", v1alpha1.ConditionDataLoss, metav1.ConditionTrue, v1alpha1.ReasonDataLoss, "shard 1")
	s.WaitActive("c")
	s.WaitFormed("c", 3, 0)
	s.WaitEvents("c", v1alpha1.ReasonDataLoss, 1)
	annotation := v1alpha1.AnnotationRequestPrefix + "acknowledge=first"
	if r := s.RunKubectl(t.Context(), "", "annotate", "vkc", "c", "-n", s.Name, annotation); r.Code != 0 {
		t.Fatal(r)
	}
	s.Eventually("the loss is acknowledged", time.Minute, func() error {
		status := s.Get("c").Status
		answered := slices.ContainsFunc(status.Requests, func(a v1alpha1.RequestStatus) bool { return a.ID == "first" && a.State == "Done" })
		if !answered || harness.Condition(s.Get("c"), v1alpha1.ConditionDataLoss).Type != "" {
			return fmt.Errorf("answers %+v, conditions %+v", status.Requests, status.Conditions)
		}
		return nil
	})
}
