package settings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

func catalog(configs map[string]v1alpha1.ValkeyConfigSpec) Catalog {
	c := Catalog{Configs: map[string]*v1alpha1.ValkeyConfig{}, Images: map[string]*v1alpha1.ValkeyImage{}}
	for name, spec := range configs {
		c.Configs[name] = &v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	for name, version := range map[string]string{"valkey-9": "9.1.2", "valkey-8": "8.1.9"} {
		c.Images[name] = &v1alpha1.ValkeyImage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ValkeyImageSpec{
			Repository: "valkey/valkey", Tag: version, Version: version, PullSecrets: []string{"pull"},
		}}
	}
	return c
}

func resources(cpu, memory string) *v1alpha1.Resources {
	r := &v1alpha1.Resources{}
	if cpu != "" {
		r.CPU = ptr.To(resource.MustParse(cpu))
	}
	if memory != "" {
		r.Memory = ptr.To(resource.MustParse(memory))
	}
	return r
}

func bind(username string) []v1alpha1.ACLBinding { return []v1alpha1.ACLBinding{{Username: username}} }

func TestTheChildWinsAndSettingsMergePerKey(t *testing.T) {
	c := catalog(map[string]v1alpha1.ValkeyConfigSpec{
		"base": {
			ImageRef: "valkey-8", Resources: resources("1", "1Gi"), ACL: bind("base"),
			Valkey: map[string]v1alpha1.SettingValue{"hz": "10", "timeout": "60", "maxmemory": "100mb"},
		},
		"middle": {BaseRef: "base", ImageRef: "valkey-9", Valkey: map[string]v1alpha1.SettingValue{"HZ": "20", "loglevel": "notice"}},
		"child":  {BaseRef: "middle", Resources: resources("", "2Gi"), Valkey: map[string]v1alpha1.SettingValue{"Timeout": "0"}},
	})
	got, problems := Resolve(c, "child")
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	want := Resolved{
		ImageName: "valkey-9", Image: "valkey/valkey:9.1.2", Version: "9.1.2", PullSecrets: []string{"pull"},
		CPU: ptr.To(resource.MustParse("1")), Memory: ptr.To(resource.MustParse("2Gi")),
		Valkey: map[string]string{"hz": "20", "timeout": "0", "loglevel": "notice", "maxmemory": "100mb"},
		Sources: map[string]Source{
			"hz": {"middle", "HZ"}, "timeout": {"child", "Timeout"}, "loglevel": {"middle", "loglevel"}, "maxmemory": {"base", "maxmemory"},
		},
		ACL: bind("base"), Chain: []string{"child", "middle", "base"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if problems := Check(got); len(problems) != 0 {
		t.Errorf("problems %v", problems)
	}
}

func TestAChildReplacesTheUsersOfItsBaseAsAWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		child []v1alpha1.ACLBinding
		want  []v1alpha1.ACLBinding
	}{
		"none set":   {nil, bind("base")},
		"an own one": {bind("child"), bind("child")},
		"empty":      {[]v1alpha1.ACLBinding{}, []v1alpha1.ACLBinding{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := catalog(map[string]v1alpha1.ValkeyConfigSpec{"base": {ImageRef: "valkey-9", ACL: bind("base")}, "child": {BaseRef: "base", ACL: tc.child}})
			got, problems := Resolve(c, "child")
			if diff := cmp.Diff(tc.want, got.ACL); diff != "" || len(problems) != 0 {
				t.Errorf("problems %v (-want +got)\n%s", problems, diff)
			}
		})
	}
}

//
func TestMaxmemoryDefaultsToAShareOfTheLimitInBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		memory, setting, want string
	}{
		"unset":          {"1Gi", "", "805306368"},
		"0":              {"1Gi", "0", "805306368"},
		"quoted 0":       {"1Gi", `"0mb"`, "805306368"},
		"set":            {"1Gi", "512mb", "512mb"},
		"unreadable":     {"1Gi", "512Mi", "512Mi"},
		"no limit":       {"", "", ""},
		"no limit and 0": {"", "0", "0"},
		"an odd limit":   {"101", "", "75"},
		"decimal limit":  {"500M", "", "375000000"},
		"fraction":       {"1.5Gi", "", "1207959552"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.ValkeyConfigSpec{ImageRef: "valkey-9", Resources: resources("", tc.memory), Valkey: map[string]v1alpha1.SettingValue{}}
			if tc.setting != "" {
				spec.Valkey["maxmemory"] = v1alpha1.SettingValue(tc.setting)
			}
			got, problems := Resolve(catalog(map[string]v1alpha1.ValkeyConfigSpec{"x": spec}), "x")
			if got.Valkey["maxmemory"] != tc.want || len(problems) != 0 {
				t.Errorf("got %q, want %q, problems %v", got.Valkey["maxmemory"], tc.want, problems)
			}
		})
	}
}

func TestWhatCannotBeResolvedIsReportedWithWhatExists(t *testing.T) {
	tooLong := map[string]v1alpha1.ValkeyConfigSpec{}
	for i := range 11 {
		spec := v1alpha1.ValkeyConfigSpec{ImageRef: "valkey-9", BaseRef: fmt.Sprint("c", i+1)}
		if i == 10 {
			spec.BaseRef = ""
		}
		tooLong[fmt.Sprint("c", i)] = spec
	}
	for name, tc := range map[string]struct {
		configs map[string]v1alpha1.ValkeyConfigSpec
		ref     string
		want    Problem
	}{
		"missing config": {
			map[string]v1alpha1.ValkeyConfigSpec{"b": {}, "a": {}},
			"standard",
			Problem{v1alpha1.ReasonConfigNotFound, `ValkeyConfig "standard" doesn't exist; existing: a, b`},
		},
		"no config at all": {
			nil, "standard",
			Problem{v1alpha1.ReasonConfigNotFound, `ValkeyConfig "standard" doesn't exist; none exists`},
		},
		"missing base": {
			map[string]v1alpha1.ValkeyConfigSpec{"a": {BaseRef: "base", ImageRef: "valkey-9"}},
			"a",
			Problem{v1alpha1.ReasonConfigNotFound, `ValkeyConfig "base", the baseRef of "a", doesn't exist; existing: a`},
		},
		"circle": {
			map[string]v1alpha1.ValkeyConfigSpec{"a": {BaseRef: "b"}, "b": {BaseRef: "c"}, "c": {BaseRef: "b"}},
			"a",
			Problem{v1alpha1.ReasonConfigChainInvalid, "ValkeyConfigs build on each other in a circle: a → b → c → b: remove one baseRef"},
		},
		"itself": {
			map[string]v1alpha1.ValkeyConfigSpec{"a": {BaseRef: "a"}},
			"a",
			Problem{v1alpha1.ReasonConfigChainInvalid, "ValkeyConfigs build on each other in a circle: a → a: remove one baseRef"},
		},
		"eleven": {
			tooLong, "c0",
			Problem{v1alpha1.ReasonConfigChainInvalid, "the chain of ValkeyConfigs is longer than 10: c0 → c1 → c2 → c3 → c4 → c5 → c6 → c7 → c8 → c9 → c10: merge some of them"},
		},
		"no image named": {
			map[string]v1alpha1.ValkeyConfigSpec{"a": {BaseRef: "b"}, "b": {}},
			"a",
			Problem{v1alpha1.ReasonImageNotSet, "no ValkeyConfig of the chain a → b sets imageRef; existing: valkey-8, valkey-9"},
		},
		"missing image": {
			map[string]v1alpha1.ValkeyConfigSpec{"a": {ImageRef: "valkey-10"}},
			"a",
			Problem{v1alpha1.ReasonImageNotFound, `ValkeyImage "valkey-10" doesn't exist; existing: valkey-8, valkey-9`},
		},
		"E-02 old Valkey": {
			map[string]v1alpha1.ValkeyConfigSpec{"a": {ImageRef: "valkey-8"}},
			"a",
			Problem{v1alpha1.ReasonVersionNotSupported, `ValkeyImage "valkey-8" has Valkey 8.1.9, but 9.0.0 or newer is needed: choose another image, or correct its version`},
		},
		"one key twice": {
			map[string]v1alpha1.ValkeyConfigSpec{"a": {ImageRef: "valkey-9", Valkey: map[string]v1alpha1.SettingValue{"hz": "10", "HZ": "20"}}},
			"a",
			Problem{v1alpha1.ReasonSettingRefused, `ValkeyConfig "a" sets hz twice, as "HZ" and "hz": keep one`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Resolve(catalog(tc.configs), tc.ref)
			if diff := cmp.Diff([]Problem{tc.want}, problems); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	delete(tooLong, "c0")
	if got, problems := Resolve(catalog(tooLong), "c1"); len(problems) != 0 || len(got.Chain) != MaxChain {
		t.Errorf("a chain of ten is refused: %v", problems)
	}
}

// E-02: the declared version decides, never the text of the tag.
func TestTheTagSaysNothingAboutTheVersion(t *testing.T) {
	c := catalog(map[string]v1alpha1.ValkeyConfigSpec{"a": {ImageRef: "i"}})
	for _, tc := range []struct {
		tag, version string
		ok           bool
	}{
		{"latest", "9.1.2", true},
		{"8.1.9", "9.0.0", true},
		{"9.1.2", "8.1.9", false},
		{"9.1.2@sha256:" + strings.Repeat("a", 64), "9.1.2", true},
		{"9.1.2", "nine", false},
	} {
		c.Images["i"] = &v1alpha1.ValkeyImage{ObjectMeta: metav1.ObjectMeta{Name: "i"}, Spec: v1alpha1.ValkeyImageSpec{Repository: "r", Tag: tc.tag, Version: tc.version}}
		got, problems := Resolve(c, "a")
		if (len(problems) == 0) != tc.ok || got.Image != "r:"+tc.tag {
			t.Errorf("tag %s, version %s: image %q, problems %v", tc.tag, tc.version, got.Image, problems)
		}
		if !tc.ok && problems[0].Reason != v1alpha1.ReasonVersionNotSupported {
			t.Errorf("reason %s", problems[0].Reason)
		}
	}
}

func TestAMessageListsNotMoreThanAPersonReads(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("config-%03d", i))
	}
	text := Existing(names)
	if len(text) > 500 || !strings.HasPrefix(text, "existing: config-000, config-001,") || !strings.HasSuffix(text, "config-019 and 980 more") {
		t.Errorf("%q", text)
	}
	if text := Existing(names[:20]); !strings.HasSuffix(text, ", config-019") {
		t.Errorf("%q", text)
	}
}
