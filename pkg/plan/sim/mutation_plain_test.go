package sim

import (
	"slices"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// plainMutations are for the checks that notice none of the others first.
func plainMutations() []mutation {
	return []mutation{
		{"does not say why", saying(mute), []string{"reasons"}},
		{"does two kinds of things at a time", saying(mix), []string{"one kind"}},
		{"deletes a primary that was to hand over", Hooks{Before: deletePrimary}, []string{"no deletion of a primary"}},
		{"deletes the silent though it hears hardly anybody", saying(deleteSilent), []string{"no deletion by a manager that is cut off"}},
	}
}

func mute(_ plan.State, d plan.Decision) plan.Decision {
	d.Actions = slices.Clone(d.Actions)
	for i := range d.Actions {
		d.Actions[i].Reason = ""
	}
	return d
}

// mix activates nodes together with whatever else there is to do.
func mix(s plan.State, d plan.Decision) plan.Decision {
	for _, n := range s.Nodes {
		if len(d.Actions) > 0 && n.Lifecycle == v1alpha1.LifecycleJoining && n.InSync {
			d.Actions = append(slices.Clone(d.Actions), plan.Action{Kind: plan.Activate, Node: n.Name, Reason: "a mistake"})
			return d
		}
	}
	return d
}

func deletePrimary(a plan.Action) plan.Action {
	if a.Kind == plan.Failover && a.Mode == plan.Graceful && a.Target != "" {
		return plan.Action{Kind: plan.DeleteNode, Node: a.Target, Position: a.Position, Reason: "a mistake"}
	}
	return a
}

// deleteSilent deletes who has been silent for long, whoever else is.
func deleteSilent(s plan.State, d plan.Decision) plan.Decision {
	for _, n := range s.Nodes {
		if n.Pod == plan.PodRunning && !n.Dead() && n.Lifecycle == v1alpha1.LifecycleActive && n.Silent >= time.Minute {
			return plan.Decision{Actions: []plan.Action{{Kind: plan.DeleteNode, Node: n.Name, Position: n.Position, Reason: "a mistake"}}}
		}
	}
	return d
}
