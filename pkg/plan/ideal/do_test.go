package ideal_test

import (
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan/ideal"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// What the servers refuse, an ideal world refuses too: a planner that relies on it
// is wrong.
func TestTheWorldRefusesWhatServersRefuse(t *testing.T) {
	s := complete(t, 2, 1)
	first, second := primaryOf(t, s, 0), primaryOf(t, s, 1)
	var replica plan.Node
	for _, n := range s.Nodes {
		if n.Position.Shard == 0 && n.Name != first.Name {
			replica = n
		}
	}
	all := slots.All()
	for what, a := range map[string]plan.Action{
		"a node that does not exist":         {Kind: plan.Activate, Node: "c-nobody"},
		"a second node of the same name":     {Kind: plan.CreateNode, Node: first.Name},
		"a config epoch for one that has it": {Kind: plan.SetConfigEpoch, Node: first.Name, Epoch: 7},
		"slots that have an owner":           {Kind: plan.AssignSlots, Node: first.Name, Slots: all},
		"lost slots that have an owner":      {Kind: plan.ReplaceLost, Node: first.Name, Slots: all},
		"slots of another":                   {Kind: plan.MoveSlots, Node: first.Name, Target: second.Name, Slots: all},
		"slots to nobody":                    {Kind: plan.MoveSlots, Node: first.Name, Target: "c-nobody"},
		"a replica that owns slots":          {Kind: plan.Replicate, Node: first.Name, TargetID: second.NodeID},
		"a primary that it doesn't know":     {Kind: plan.Replicate, Node: replica.Name, TargetID: "0"},
		"to forget its primary":              {Kind: plan.Forget, Node: replica.Name, TargetID: first.NodeID},
		"a failover by a primary":            {Kind: plan.Failover, Node: first.Name},
		"to meet nobody":                     {Kind: plan.Introduce, Node: first.Name, Target: "c-nobody"},
		"an action of no kind":               {Node: first.Name},
	} {
		if err := ideal.From(s).Do(a); err == nil {
			t.Errorf("%s: not refused", what)
		}
	}
	w := ideal.From(s)
	w.Node(replica.Name).Pod = plan.PodTerminated
	if err := w.Do(plan.Action{Kind: plan.Failover, Node: replica.Name}); err == nil {
		t.Error("a dead server takes a command")
	}
}
