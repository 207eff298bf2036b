package cgroups

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	oneByOne = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices
37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	together = `32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset,clone_children
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices
37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio
39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
99 31 0:36 / /somewhere/else/pids rw - cgroup cgroup rw,pids
`
	v2 = `31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
`
)

func TestDetection(t *testing.T) {
	for name, test := range map[string]struct {
		mountinfo string
		v2        bool
		paths     []string
	}{
		"v1 controllers one by one, with an empty v2 tree": {oneByOne, false, []string{
			"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/memory",
			"/sys/fs/cgroup/devices", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/blkio", "/sys/fs/cgroup/pids",
		}},
		"v1 controllers that share a mount": {together, false, []string{
			"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/memory",
			"/sys/fs/cgroup/devices", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/blkio", "/sys/fs/cgroup/pids",
		}},
		"v2": {v2, true, []string{"/sys/fs/cgroup"}},
	} {
		t.Run(name, func(t *testing.T) {
			host, err := parse(strings.NewReader(test.mountinfo))
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, m := range host.Mounts {
				paths = append(paths, m.Path)
			}
			if diff := cmp.Diff(test.paths, paths); diff != "" {
				t.Error(diff)
			}
			if host.V2 != test.v2 {
				t.Errorf("v2 is %t, want %t", host.V2, test.v2)
			}
		})
	}
}

func TestDetectionSaysWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct{ mountinfo, want string }{
		"no cgroups at all":  {"27 1 254:0 / / rw - ext4 /dev/vda rw\n", "mount cgroup2"},
		"a v1 host, no pids": {strings.Replace(oneByOne, "rw,pids", "rw,other", 1), "without the controllers pids;"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(strings.NewReader(test.mountinfo)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestMembershipIsReadForEachHierarchy(t *testing.T) {
	const procCgroup = "5:cpu,cpuacct:/a\n4:memory:/process/1\n1:name=systemd:/s\n0::/unified\n"
	for want, m := range map[string]Mount{
		"/a":         {Controllers: []string{"cpuacct"}},
		"/process/1": {Controllers: []string{"memory"}},
		"/":          {Controllers: []string{"pids"}},
		"/unified":   {},
	} {
		if got := membership(procCgroup, m); got != want {
			t.Errorf("the group of %v is %q, want %q", m.Controllers, got, want)
		}
	}
}
