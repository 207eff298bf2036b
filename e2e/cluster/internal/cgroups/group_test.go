package cgroups

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAGroupIsWeighedInTheProcessorsHierarchyOnly(t *testing.T) {
	for _, c := range []struct {
		what, controllers, file, want string
		v2                            bool
	}{
		{"v1", "cpu", "cpu.shares", "256", false},
		{"v2", "", "cpu.weight", "10", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			cpu, memory := t.TempDir(), t.TempDir()
			h := Host{V2: c.v2, Mounts: []Mount{{Path: cpu, Controllers: []string{c.controllers}}}}
			if !c.v2 {
				h.Mounts = append(h.Mounts, Mount{Path: memory, Controllers: []string{"memory"}})
			}
			for _, dir := range []string{cpu, memory} {
				if err := os.Mkdir(filepath.Join(dir, "g"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.Weigh("g", 256); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(cpu, "g", c.file)); string(got) != c.want {
				t.Errorf("%s holds %q, want %s (%v)", c.file, got, c.want, err)
			}
			if left, err := os.ReadDir(filepath.Join(memory, "g")); len(left) != 0 || err != nil {
				t.Errorf("the other hierarchy got %v (%v)", left, err)
			}
		})
	}
}
