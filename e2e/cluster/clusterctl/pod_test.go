package clusterctl

import "testing"

func TestAPodsProcessesAreKnownByTheirCgroup(t *testing.T) {
	const uid = "0b1c-2d"
	for name, test := range map[string]struct {
		cgroup string
		want   bool
	}{
		"v1, besteffort": {"8:pids:/kubectl-valkey/node1/kubepods/besteffort/pod0b1c-2d/cafe\n7:blkio:/\n", true},
		"v2, guaranteed": {"0::/kubectl-valkey/node1/kubepods/pod0b1c-2d/cafe\n", true},
		"the pod itself": {"0::/kubectl-valkey/node1/kubepods/pod0b1c-2d\n", true},
		"a longer uid":   {"0::/kubectl-valkey/node1/kubepods/pod0b1c-2d9/cafe\n", false},
		"a node's own":   {"0::/kubectl-valkey/node1/system\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inPod(test.cgroup, uid); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
