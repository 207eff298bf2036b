package objects_test

import (
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func generationSpec() v1alpha1.ValkeyNodeSpec {
	c := cluster()
	c.Spec.Placement = &v1alpha1.Placement{
		Zones:        []string{"a", "b"},
		NodeSelector: map[string]v1alpha1.NodeLabelValue{"disk": "fast", "pool": "valkey"},
		Tolerations: []corev1.Toleration{
			{Key: "dedicated", Value: "valkey", Effect: corev1.TaintEffectNoSchedule},
			{Key: "flaky", Operator: corev1.TolerationOpExists},
		},
		PriorityClassName: "high",
	}
	return objects.Node(c, nodeInput()).Spec
}

func TestGenerationChangesWithWhatRolls(t *testing.T) {
	was := objects.Generation(generationSpec())
	if !regexp.MustCompile(`^[0-9a-f]{10}$`).MatchString(was) {
		t.Errorf("%q is not ten hex digits", was)
	}
	seen := map[string]string{was: "the same wish"}
	for what, change := range map[string]func(*v1alpha1.ValkeyNodeSpec){
		"image":           func(s *v1alpha1.ValkeyNodeSpec) { s.Image = "valkey/valkey:9.1.3" },
		"cpu":             func(s *v1alpha1.ValkeyNodeSpec) { s.CPU = quantity("501m") },
		"no cpu":          func(s *v1alpha1.ValkeyNodeSpec) { s.CPU = nil },
		"memory":          func(s *v1alpha1.ValkeyNodeSpec) { s.Memory = quantity("2Gi") },
		"setting":         func(s *v1alpha1.ValkeyNodeSpec) { s.ValkeySettings["maxmemory"] = "700mb" },
		"removed setting": func(s *v1alpha1.ValkeyNodeSpec) { delete(s.ValkeySettings, "maxmemory") },
		"zones":           func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.Zones = []string{"a"} },
		"node selector":   func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.NodeSelector["disk"] = "slow" },
		"toleration":      func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.Tolerations[0].Value = "other" },
		"toleration time": func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.Tolerations[1].TolerationSeconds = ptr.To(int64(3)) },
		"priority class":  func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.PriorityClassName = "low" },
		"no placement":    func(s *v1alpha1.ValkeyNodeSpec) { s.Placement = nil },
		"external access": func(s *v1alpha1.ValkeyNodeSpec) { s.External = true },
	} {
		spec := generationSpec()
		change(&spec)
		got := objects.Generation(spec)
		if other, taken := seen[got]; taken {
			t.Errorf("changed %s: the generation is that of %s", what, other)
		}
		seen[got] = what
	}
}

func TestGenerationIsBlindToWhatDoesNotRoll(t *testing.T) {
	was := objects.Generation(generationSpec())
	for what, change := range map[string]func(*v1alpha1.ValkeyNodeSpec){
		"zone spread":          func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.ZoneSpread = v1alpha1.ZoneSpreadRequired },
		"preferred zone":       func(s *v1alpha1.ValkeyNodeSpec) { s.PreferredZone = "b" },
		"pull secrets":         func(s *v1alpha1.ValkeyNodeSpec) { s.ImagePullSecrets = []string{"registry"} },
		"lifecycle":            func(s *v1alpha1.ValkeyNodeSpec) { s.Lifecycle = v1alpha1.LifecycleLeaving },
		"place in the cluster": func(s *v1alpha1.ValkeyNodeSpec) { s.ShardIndex, s.NodeIndex = 7, 3 },
		"order of zones":       func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.Zones = []string{"b", "a"} },
		"500m written as 0.5":  func(s *v1alpha1.ValkeyNodeSpec) { s.CPU = quantity("0.5") },
		"1Gi written in bytes": func(s *v1alpha1.ValkeyNodeSpec) { s.Memory = quantity("1073741824") },
		"order of tolerations": func(s *v1alpha1.ValkeyNodeSpec) {
			ts := s.Placement.Tolerations
			ts[0], ts[1] = ts[1], ts[0]
		},
		"defaults in tolerations": func(s *v1alpha1.ValkeyNodeSpec) {
			s.Placement.Tolerations[0].Operator = corev1.TolerationOpEqual
		},
	} {
		spec := generationSpec()
		change(&spec)
		if got := objects.Generation(spec); got != was {
			t.Errorf("changed %s: the generation is %s, was %s", what, got, was)
		}
	}
}
