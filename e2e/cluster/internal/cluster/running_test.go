//go:build linux

package cluster

import (
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
)

func TestOnlyWhatDoesntMendByItselfIsBroken(t *testing.T) {
	sound := func() clusterctl.Status {
		return clusterctl.Status{
			ControlPlane: []clusterctl.Process{{Name: "etcd", Running: true}},
			Nodes:        []clusterctl.Node{{Running: true, Ready: true, Processes: []clusterctl.Process{{Name: "kubelet", Running: true}}}},
		}
	}
	for name, test := range map[string]struct {
		change func(*clusterctl.Status)
		want   bool
	}{
		"nothing wrong":        {func(*clusterctl.Status) {}, false},
		"a node isn't Ready":   {func(s *clusterctl.Status) { s.Nodes[0].Ready = false }, false},
		"names don't resolve":  {func(s *clusterctl.Status) { s.Problems = []string{"node1 can't resolve names"} }, false},
		"a dead control plane": {func(s *clusterctl.Status) { s.ControlPlane[0].Running = false }, true},
		"a stopped node":       {func(s *clusterctl.Status) { s.Nodes[0].Running = false }, true},
		"a partition":          {func(s *clusterctl.Status) { s.Nodes[0].Partitioned = true }, true},
		"a paused kubelet":     {func(s *clusterctl.Status) { s.Nodes[0].KubeletPaused = true }, true},
		"a dead kubelet":       {func(s *clusterctl.Status) { s.Nodes[0].Processes[0].Running = false }, true},
	} {
		t.Run(name, func(t *testing.T) {
			st := sound()
			test.change(&st)
			if got := broken(st); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
