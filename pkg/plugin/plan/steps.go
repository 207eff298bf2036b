package plan

import (
	"fmt"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// Step is one action of the manager.
type Step struct {
	// Phase that the step belongs to, from 1, and its title.
	Phase int    `json:"phase"`
	Title string `json:"phaseTitle"`
	// Action is the planner's word, for example CreateNode.
	Action string `json:"action"`
	// Shard that it is about; of slots that move, the one that gives them.
	Shard int32 `json:"shard"`
	// ToShard takes slots.
	ToShard *int32 `json:"toShard,omitempty"`
	// Node that is told, changed or created.
	Node string `json:"node"`
	// Other is the node that the first is brought together with, takes over from, or
	// replaces.
	Other string `json:"other,omitempty"`
	// Slots that are assigned or moved.
	Slots string `json:"slots,omitempty"`
	Count int    `json:"slotCount,omitempty"`
	// Mode of a failover: empty for one that the primary consents to.
	Mode   string `json:"mode,omitempty"`
	Reason string `json:"reason"`

	set slots.Set
}

// Titles of phases.
const (
	titleRepair  = "repair"
	titleAdd     = "add nodes"
	titleAssign  = "assign slots"
	titleMove    = "move slots"
	titleRetire  = "retire nodes"
	titleRoll    = "roll shard %d"
	titleRequest = "requested"
)

// steps turns the planner's actions into those of a report.
func steps(f foresight) []Step {
	out := []Step{}
	t := &teller{f: f, at: map[string]plan.Position{}, dead: map[string]bool{}, outdated: map[string]bool{}}
	for _, n := range f.start.Nodes {
		t.at[n.Name], t.dead[n.Name], t.outdated[n.Name] = n.Position, n.Dead(), n.Outdated != ""
	}
	phase, last := 0, ""
	for i, a := range f.Steps {
		if a.Kind == plan.CreateNode {
			t.at[a.Node] = a.Position
		}
		title := t.title(i, a)
		if title == "" {
			title = last
		}
		if title != last {
			phase++
		}
		last = title
		out = append(out, t.step(phase, title, a))
	}
	return out
}

// teller knows what is needed to tell of actions.
type teller struct {
	f        foresight
	at       map[string]plan.Position
	dead     map[string]bool
	outdated map[string]bool
}

// title returns the phase that an action opens; empty for one that belongs to
// whatever is under way.
func (t *teller) title(i int, a plan.Action) string {
	shard := t.at[a.Node].Shard
	switch a.Kind {
	case plan.CreateNode:
		switch {
		case a.Predecessor == "":
			return titleAdd
		case t.dead[a.Predecessor]:
			return titleRepair
		}
		return fmt.Sprintf(titleRoll, shard)
	case plan.AssignSlots:
		return titleAssign
	case plan.MoveSlots:
		return titleMove
	case plan.ReplaceLost:
		return titleRepair
	case plan.Failover:
		switch {
		case a.Mode != plan.Graceful || t.dead[a.Target]:
			return titleRepair
		case t.rolled(a.Target):
			return fmt.Sprintf(titleRoll, shard)
		case i == len(t.f.Steps)-1:
			return titleRequest
		}
		return titleRetire
	case plan.Leave:
		if t.rolled(a.Node) {
			return fmt.Sprintf(titleRoll, shard)
		}
		return titleRetire
	}
	if i > 0 {
		return ""
	}
	// What is left over of something that was begun.
	switch a.Kind {
	case plan.Forget, plan.DeleteNode:
		if slices.ContainsFunc(t.f.start.Nodes, plan.Node.Dead) {
			return titleRepair
		}
		return titleRetire
	}
	return titleAdd
}

// rolled reports whether a node goes because it is outdated, and not because its
// position goes.
func (t *teller) rolled(node string) bool {
	target, at := t.f.End.Target, t.at[node]
	return t.outdated[node] && at.Shard < target.Shards && at.Index <= target.ReplicasPerShard
}

func (t *teller) step(phase int, title string, a plan.Action) Step {
	s := Step{
		Phase: phase, Title: title, Action: string(a.Kind), Shard: t.at[a.Node].Shard, Node: a.Node, Other: a.Target,
		Slots: a.Slots.String(), Count: a.Slots.Len(), Mode: string(a.Mode), Reason: output.Clean(a.Reason), set: a.Slots,
	}
	switch a.Kind {
	case plan.CreateNode:
		s.Other = a.Predecessor
	case plan.MoveSlots:
		to := t.at[a.Target].Shard
		s.ToShard = &to
	}
	return s
}
