package plan

import (
	"errors"
	"slices"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

func TestAnEditDuringCreationTakesBackNodesThatNobodyKnows(t *testing.T) {
	alone := func(id string) topology.Reply {
		return topology.Reply{ID: id, Members: []topology.Member{{ID: id, Myself: true, Role: topology.RolePrimary}}}
	}
	owner := alone("c")
	owner.Members[0].Slots = slots.FromRanges(slots.Range{Start: 0, End: 10})
	met := alone("d")
	met.Members = append(met.Members, topology.Member{ID: "e", Role: topology.RolePrimary})
	tests := map[string]struct {
		pod    PodPhase
		reply  *topology.Reply
		change func(*State)
		gone   bool
	}{
		"its pod is pending":             {pod: PodPending, gone: true},
		"its pod was never made":         {pod: PodNone, gone: true},
		"its pod has ended":              {pod: PodTerminated, gone: true},
		"it knows nobody":                {pod: PodRunning, reply: new(alone("b")), gone: true},
		"it owns slots":                  {pod: PodRunning, reply: &owner},
		"it has met another":             {pod: PodRunning, reply: &met},
		"it runs and can't be asked":     {pod: PodRunning, reply: &topology.Reply{Err: errors.New("timeout")}},
		"the cluster was complete once":  {pod: PodPending, change: func(s *State) { s.Creating = false }},
		"it is being deleted":            {pod: PodPending, change: func(s *State) { s.Nodes[1].Terminating = true }},
		"an edit gave it its place back": {pod: PodPending, change: func(s *State) { s.Target.Shards = 2 }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := State{
				Cluster: "c", UID: "1", Creating: true, Target: v1alpha1.TargetTopology{Shards: 1},
				Nodes: []Node{
					{Name: "c-0", Lifecycle: v1alpha1.LifecycleJoining, Pod: PodPending},
					{Name: "c-1", Position: Position{Shard: 1}, Lifecycle: v1alpha1.LifecycleJoining, Pod: tt.pod},
				},
			}
			if tt.reply != nil {
				tt.reply.Node = "c-1"
				s.Replies = []topology.Reply{*tt.reply}
			}
			if tt.change != nil {
				tt.change(&s)
			}
			gone := slices.ContainsFunc(Next(s).Actions, func(a Action) bool { return a.Kind == DeleteNode && a.Node == "c-1" })
			if gone != tt.gone {
				t.Errorf("node deleted: %t, want %t; decision %+v", gone, tt.gone, Next(s))
			}
		})
	}
}
