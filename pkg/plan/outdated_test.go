package plan

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

func spec(change func(*v1alpha1.ValkeyNodeSpec)) v1alpha1.ValkeyNodeSpec {
	cpu, memory := resource.MustParse("500m"), resource.MustParse("1Gi")
	s := v1alpha1.ValkeyNodeSpec{
		ClusterName: "c", Image: "valkey/valkey:9.1.2", CPU: &cpu, Memory: &memory,
		ValkeySettings: map[string]v1alpha1.SettingValue{"maxmemory": "1gb", "io-threads": "2"},
		Placement:      &v1alpha1.Placement{Zones: []string{"a", "b"}},
	}
	change(&s)
	return s
}

func TestWhatReplacesANodeAndWhatIsAppliedLive(t *testing.T) {
	same := func(*v1alpha1.ValkeyNodeSpec) {}
	for name, c := range map[string]struct {
		change  func(*v1alpha1.ValkeyNodeSpec)
		replace string
		live    string
	}{
		"nothing":              {same, "", ""},
		"image":                {func(s *v1alpha1.ValkeyNodeSpec) { s.Image = "valkey/valkey:9.2" }, "image valkey/valkey:9.1.2 is to be valkey/valkey:9.2", ""},
		"cpu":                  {func(s *v1alpha1.ValkeyNodeSpec) { *s.CPU = resource.MustParse("1") }, "cpu 500m is to be 1", ""},
		"cpu in other words":   {func(s *v1alpha1.ValkeyNodeSpec) { *s.CPU = resource.MustParse("0.5") }, "", ""},
		"memory":               {func(s *v1alpha1.ValkeyNodeSpec) { s.Memory = nil }, "memory 1Gi is to be unlimited", ""},
		"external":             {func(s *v1alpha1.ValkeyNodeSpec) { s.External = true }, "external access off is to be on", ""},
		"zones":                {func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.Zones = []string{"a"} }, "zones", ""},
		"zones in other order": {func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.Zones = []string{"b", "a"} }, "", ""},
		"zone spread":          {func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.ZoneSpread = v1alpha1.ZoneSpreadRequired }, "", ""},
		"node selector": {func(s *v1alpha1.ValkeyNodeSpec) {
			s.Placement.NodeSelector = map[string]v1alpha1.NodeLabelValue{"a": "b"}
		}, "nodeSelector", ""},
		"tolerations":        {func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.Tolerations = []corev1.Toleration{{Key: "k"}} }, "tolerations", ""},
		"priority":           {func(s *v1alpha1.ValkeyNodeSpec) { s.Placement.PriorityClassName = "high" }, "priority class", ""},
		"pull secrets":       {func(s *v1alpha1.ValkeyNodeSpec) { s.ImagePullSecrets = []string{"p"} }, "", ""},
		"lifecycle":          {func(s *v1alpha1.ValkeyNodeSpec) { s.Lifecycle = v1alpha1.LifecycleActive }, "", ""},
		"run-time setting":   {func(s *v1alpha1.ValkeyNodeSpec) { s.ValkeySettings["maxmemory"] = "2gb" }, "", "maxmemory=2gb"},
		"new setting":        {func(s *v1alpha1.ValkeyNodeSpec) { s.ValkeySettings["hz"] = "20" }, "", "hz=20"},
		"start-time setting": {func(s *v1alpha1.ValkeyNodeSpec) { s.ValkeySettings["io-threads"] = "4" }, "setting io-threads is taken only at start", ""},
		"removed setting":    {func(s *v1alpha1.ValkeyNodeSpec) { delete(s.ValkeySettings, "maxmemory") }, "setting maxmemory is no longer wished", ""},
	} {
		got := Compare(spec(same), nil, spec(c.change), func(key string) bool { return key == "io-threads" })
		if c.replace == "" && got.Replace != "" || !strings.Contains(got.Replace, c.replace) {
			t.Errorf("%s: replace %q, want %q", name, got.Replace, c.replace)
		}
		var live []string
		for key, value := range got.Live {
			live = append(live, key+"="+string(value))
		}
		if strings.Join(live, ",") != c.live {
			t.Errorf("%s: live %v, want %q", name, live, c.live)
		}
	}
}

func TestWhatWasAppliedLiveIsNotAppliedAgain(t *testing.T) {
	want := spec(func(s *v1alpha1.ValkeyNodeSpec) { s.ValkeySettings["maxmemory"] = "2gb" })
	applied := map[string]v1alpha1.SettingValue{"maxmemory": "2gb"}
	never := func(string) bool { return false }
	if got := Compare(spec(func(*v1alpha1.ValkeyNodeSpec) {}), applied, want, never); got.Replace != "" || len(got.Live) != 0 {
		t.Errorf("applied again: %+v", got)
	}
	back := spec(func(*v1alpha1.ValkeyNodeSpec) {})
	if got := Compare(back, applied, back, never); got.Live["maxmemory"] != "1gb" {
		t.Errorf("the way back is not applied: %+v", got)
	}
}
