package plan

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// alike is how many steps of a kind are shown one by one in a phase; who wants to
// see more asks for -o wide.
const alike = 8

// renderer turns a report into text. It only formats.
type renderer struct {
	palette output.Palette
	wide    bool
}

func (v renderer) text(r *Report) (string, error) {
	var b bytes.Buffer
	v.header(&b, r)
	for _, section := range []struct {
		title string
		table output.Table
	}{
		{"Steps", v.steps(r)},
		{"Slots that move", v.moves(r)},
		{"Nodes that are replaced", v.replaced(r)},
		{"Settings that running servers are given", v.live(r)},
		{"Shards", v.shards(r)},
	} {
		if len(section.table.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", v.palette.Title(section.title))
		if err := section.table.Write(&b); err != nil {
			return "", err
		}
		if section.title == "Steps" && len(r.ShardsAlike) > 0 {
			fmt.Fprintf(&b, "In the same way, one after the other: shards %s.\n", numbers(r.ShardsAlike))
		}
	}
	v.footer(&b, r)
	return b.String(), nil
}

func (v renderer) header(b *bytes.Buffer, r *Report) {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(b, "%s %s\n", v.palette.Title(fmt.Sprintf("%-10s", key+":")), value)
		}
	}
	line("Cluster", r.Namespace+"/"+r.Name)
	var changes []string
	for _, c := range r.Changes {
		changes = append(changes, fmt.Sprintf("%s %s → %s", c.Field, c.From, c.To))
	}
	line("Change", strings.Join(changes, ", "))
	line("Manager", v.manager(r.Manager))
	line("Requests", strings.Join(r.Requests, ", "))
	line("Forecast", v.effect(r))
	if r.Waiting != "" {
		line("Ends with", v.palette.Warn(r.Waiting))
	}
}

func (v renderer) manager(m Manager) string {
	text := orElse(m.Doing, "has nothing to do")
	if m.Held != "" {
		return v.palette.Warn("held: " + m.Held)
	}
	if !m.Observed {
		text = "has not looked at the spec as it is now"
		if m.Doing != "" {
			text += "; before: " + m.Doing
		}
	}
	return text
}

// effect is the forecast in one line.
func (v renderer) effect(r *Report) string {
	e := r.Effect
	var parts []string
	add := func(n int, thing, done string) {
		if n > 0 {
			parts = append(parts, output.Plural(n, thing)+" "+done)
		}
	}
	add(e.NodesCreated, "node", "created")
	add(e.NodesReplaced, "node", "replaced")
	add(e.NodesRetired, "node", "retired")
	add(e.SlotsMoved, "slot", "moved")
	if e.Failovers > 0 {
		parts = append(parts, output.Plural(e.Failovers, "failover"))
	}
	add(len(r.Live), "setting", "applied live")
	if e.SlotsLost > 0 {
		parts = append(parts, v.palette.Bad(output.Plural(e.SlotsLost, "slot")+" given to empty nodes"))
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case len(r.Steps) > 0:
		return output.Plural(len(r.Steps), "step") + " to finish what was begun"
	case r.Waiting != "":
		return "nothing that the manager could do"
	}
	return v.palette.Good("nothing is left to do")
}

// steps lists what somebody notices; what only brings nodes together, and the end
// of long lists, is left to -o wide.
func (v renderer) steps(r *Report) output.Table {
	t := output.Table{Header: []string{"PHASE", "SHARD", "STEP", "NODE", "WHAT"}}
	if v.wide {
		t.Header = append(t.Header, "WHY")
	}
	list := v.noticed(r.Steps)
	type kind struct {
		phase  int
		action string
	}
	total, shown := map[kind]int{}, map[kind]int{}
	for _, s := range list {
		total[kind{s.Phase, s.Action}]++
	}
	phase, number := 0, 0
	for _, s := range list {
		title := " "
		if s.Phase != phase {
			phase, number = s.Phase, number+1
			title = fmt.Sprintf("%d %s", number, s.Title)
		}
		word := orElse(words[plan.Kind(s.Action)], s.Action)
		if s.Action == string(plan.ReplaceLost) {
			word = v.palette.Bad(word)
		}
		k := kind{s.Phase, s.Action}
		shown[k]++
		row := []string{title, fmt.Sprint(s.Shard), word, s.Node, what(s)}
		switch {
		case v.wide && strings.HasSuffix(s.Reason, what(s)):
			row = append(row, "")
		case v.wide:
			row = append(row, s.Reason)
		case total[k] <= alike+1:
		case shown[k] > alike+1:
			continue
		case shown[k] == alike+1:
			row = []string{title, " ", word, " ", fmt.Sprintf("… %d more; -o wide lists them", total[k]-alike)}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// noticed are the steps to be shown.
func (v renderer) noticed(list []Step) []Step {
	if v.wide {
		return list
	}
	var out []Step
	created, leaving := map[string]bool{}, map[string]bool{}
	for _, s := range list {
		switch plan.Kind(s.Action) {
		case plan.SetConfigEpoch, plan.Introduce, plan.Replicate, plan.Forget:
			continue
		case plan.CreateNode:
			created[s.Node] = true
		case plan.Leave:
			leaving[s.Node] = true
		case plan.Activate:
			if created[s.Node] {
				continue
			}
		case plan.DeleteNode:
			if leaving[s.Node] {
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// words are what people call actions.
var words = map[plan.Kind]string{
	plan.CreateNode:     "create",
	plan.SetConfigEpoch: "number",
	plan.AssignSlots:    "assign slots",
	plan.Introduce:      "introduce",
	plan.Replicate:      "replicate",
	plan.Activate:       "join",
	plan.Forget:         "forget",
	plan.MoveSlots:      "move slots",
	plan.Failover:       "fail over",
	plan.ReplaceLost:    "give up data",
	plan.Leave:          "retire",
	plan.DeleteNode:     "remove",
}

// what says of a step what its node and shard don't.
func what(s Step) string {
	switch plan.Kind(s.Action) {
	case plan.CreateNode:
		if s.Other != "" {
			return "takes the place of " + s.Other
		}
		return s.Reason
	case plan.MoveSlots:
		return fmt.Sprintf("%s to shard %d: %s", output.Plural(s.Count, "slot"), *s.ToShard, s.Slots)
	case plan.AssignSlots:
		return fmt.Sprintf("%s: %s", output.Plural(s.Count, "slot"), s.Slots)
	case plan.Failover:
		text := "takes over from " + s.Other
		switch plan.FailoverMode(s.Mode) {
		case plan.Force:
			text += ", which is dead"
		case plan.Takeover:
			text += ", without a vote"
		}
		return text
	case plan.Leave:
		if s.Title == fmt.Sprintf(titleRoll, s.Shard) {
			return "its successor is in sync"
		}
		return strings.TrimPrefix(s.Reason, "node "+s.Node+" ")
	case plan.DeleteNode, plan.Activate:
		return strings.TrimPrefix(s.Reason, "node "+s.Node+" ")
	case plan.Introduce:
		return "to " + s.Other
	case plan.Replicate:
		return "from " + s.Other
	}
	return s.Reason
}

func (v renderer) moves(r *Report) output.Table {
	t := output.Table{Header: []string{"FROM", "TO", "COUNT", "SLOTS"}}
	for _, m := range r.Moves {
		t.Rows = append(t.Rows, []string{fmt.Sprint(m.From), fmt.Sprint(m.To), fmt.Sprint(m.Count), m.Slots})
	}
	return t
}

func (v renderer) replaced(r *Report) output.Table {
	t := output.Table{Header: []string{"NODE", "SHARD", "ROLE", "BY", "WHY"}}
	for _, n := range r.Replaced {
		t.Rows = append(t.Rows, []string{n.Node, fmt.Sprint(n.Shard), n.Role, n.By, n.Reason})
	}
	return t
}

func (v renderer) live(r *Report) output.Table {
	t := output.Table{Header: []string{"SETTING", "FROM", "TO", "NODES"}}
	for _, l := range r.Live {
		from := make([]string, len(l.From))
		for i := range l.From {
			from[i] = orElse(l.From[i], "(the server's own)")
		}
		t.Rows = append(t.Rows, []string{l.Setting, strings.Join(from, ", "), l.To, fmt.Sprint(l.Nodes)})
	}
	return t
}

// shards compares before and after, if anything differs.
func (v renderer) shards(r *Report) output.Table {
	t := output.Table{Header: []string{"SHARD", "SLOTS BEFORE", "AFTER", "NODES BEFORE", "AFTER", "FAILOVERS"}}
	if len(r.Steps) == 0 {
		return t
	}
	for _, s := range r.Shards {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(s.Index), fmt.Sprint(s.CountBefore), fmt.Sprint(s.CountAfter),
			fmt.Sprint(s.NodesBefore), fmt.Sprint(s.NodesAfter), fmt.Sprint(s.Failovers),
		})
	}
	return t
}

func (v renderer) footer(b *bytes.Buffer, r *Report) {
	b.WriteString("\nA forecast from what the manager last reported, if all goes well. Nothing was changed.\n")
	for _, n := range r.Notes {
		fmt.Fprintf(b, "%s %s\n", v.palette.Warn("Note:"), n)
	}
}

func numbers(list []int32) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = fmt.Sprint(n)
	}
	return strings.Join(out, ", ")
}
