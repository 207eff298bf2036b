//go:build linux

package node

import (
	"slices"
	"testing"
)

func targets(s Spec) []string {
	var out []string
	for _, m := range s.mounts() {
		out = append(out, m.target)
	}
	return out
}

func TestCgroupMountsAreShownWhereTheHostHasThem(t *testing.T) {
	v1 := targets(Spec{Cgroups: []string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"}})
	for _, want := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"} {
		if !slices.Contains(v1, want) {
			t.Errorf("v1: no mount on %s in %v", want, v1)
		}
	}
	v2 := targets(Spec{Cgroups: []string{"/sys/fs/cgroup"}})
	if n := len(v2) - len(targets(Spec{})); n != 1 || v2[len(v2)-1] != "/sys/fs/cgroup" {
		t.Errorf("v2: mounts on %v", v2)
	}
}
