package objects_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func placedPod(p *v1alpha1.Placement, defaultSpread v1alpha1.ZoneSpread, preferredZone string) corev1.PodSpec {
	c := cluster()
	c.Spec.Placement = p
	in := nodeInput()
	in.PreferredZone = preferredZone
	return objects.Pod(node(c, in), objects.PodInput{DefaultZoneSpread: defaultSpread}).Spec
}

// U-07
func TestAShardIsSpreadOverZonesAndHosts(t *testing.T) {
	const zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
	type constraint struct {
		Key   string
		Hard  bool
		Shard bool
	}
	soft := []constraint{{zone, false, true}, {host, false, true}}
	hard := []constraint{{zone, true, true}, {host, false, true}, {zone, false, false}}
	for _, tc := range []struct {
		name           string
		wish, fallback v1alpha1.ZoneSpread
		want           []constraint
	}{
		{"best effort", v1alpha1.ZoneSpreadBestEffort, v1alpha1.ZoneSpreadRequired, soft},
		{"required", v1alpha1.ZoneSpreadRequired, v1alpha1.ZoneSpreadBestEffort, hard},
		{"unset, manager wants best effort", "", v1alpha1.ZoneSpreadBestEffort, soft},
		{"unset, manager requires", "", v1alpha1.ZoneSpreadRequired, hard},
		{"unset everywhere", "", "", soft},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := placedPod(&v1alpha1.Placement{ZoneSpread: tc.wish}, tc.fallback, "")
			var got []constraint
			for _, c := range spec.TopologySpreadConstraints {
				_, ofShard := c.LabelSelector.MatchLabels[v1alpha1.LabelShardIndex]
				got = append(got, constraint{c.TopologyKey, c.WhenUnsatisfiable == corev1.DoNotSchedule, ofShard})
				if c.MaxSkew != 1 || *c.NodeTaintsPolicy != corev1.NodeInclusionPolicyHonor {
					t.Errorf("%s: skew %d, taints %s", c.TopologyKey, c.MaxSkew, *c.NodeTaintsPolicy)
				}
				if diff := cmp.Diff([]string{v1alpha1.LabelGeneration}, c.MatchLabelKeys); diff != "" {
					t.Errorf("a roll would not end spread: %s", diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestZonesAreRequiredAndThePredecessorsZoneIsPreferred(t *testing.T) {
	zones := &v1alpha1.Placement{Zones: []string{"a", "b"}}
	for _, tc := range []struct {
		name      string
		placement *v1alpha1.Placement
		preferred string
		required  []string
	}{
		{"neither", nil, "", nil},
		{"zones", zones, "", []string{"a", "b"}},
		{"predecessor", nil, "b", nil},
		{"both", zones, "b", []string{"a", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := placedPod(tc.placement, "", tc.preferred)
			if spec.Affinity == nil {
				if tc.required != nil || tc.preferred != "" {
					t.Fatal("no affinity")
				}
				return
			}
			affinity := spec.Affinity.NodeAffinity
			var required []string
			if r := affinity.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
				required = r.NodeSelectorTerms[0].MatchExpressions[0].Values
			}
			if diff := cmp.Diff(tc.required, required); diff != "" {
				t.Errorf("required zones: %s", diff)
			}
			var preferred string
			for _, p := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
				preferred = p.Preference.MatchExpressions[0].Values[0]
			}
			if preferred != tc.preferred {
				t.Errorf("prefers zone %q, want %q", preferred, tc.preferred)
			}
		})
	}
}

func TestTolerationsAreTheUsersAndArm64EachOnce(t *testing.T) {
	arm := corev1.Toleration{Key: "kubernetes.io/arch", Operator: corev1.TolerationOpEqual, Value: "arm64", Effect: corev1.TaintEffectNoSchedule}
	dedicated := corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists}
	for _, tc := range []struct {
		name         string
		wished, want []corev1.Toleration
	}{
		{"none wished", nil, []corev1.Toleration{arm}},
		{"one wished", []corev1.Toleration{dedicated}, []corev1.Toleration{arm, dedicated}},
		{"arm64 wished too", []corev1.Toleration{dedicated, arm}, []corev1.Toleration{arm, dedicated}},
		{"one wished twice", []corev1.Toleration{dedicated, dedicated}, []corev1.Toleration{arm, dedicated}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := placedPod(&v1alpha1.Placement{Tolerations: tc.wished}, "", "")
			if diff := cmp.Diff(tc.want, spec.Tolerations); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSchedulingFieldsArriveOnThePod(t *testing.T) {
	spec := placedPod(&v1alpha1.Placement{
		NodeSelector:      map[string]v1alpha1.NodeLabelValue{"pool": "valkey"},
		PriorityClassName: "high",
	}, "", "")
	if diff := cmp.Diff(map[string]string{"pool": "valkey"}, spec.NodeSelector); diff != "" {
		t.Errorf("O-02: node selector: %s", diff)
	}
	if spec.PriorityClassName != "high" {
		t.Errorf("O-02: priority class %q", spec.PriorityClassName)
	}
}
