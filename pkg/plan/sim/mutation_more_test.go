package sim

import (
	"slices"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// moreMutations are mistakes of another kind: rules in the wrong order, the wrong
// one of two nodes, what is taken for granted that has to be asked for.
func moreMutations() []mutation {
	return []mutation{
		{"takes a shard over by force that it could ask for", Hooks{Before: neverAsks}, []string{"no lost write"}},
		{"drains the first shard instead of the last", seeing(drainTheFirst), []string{"copies in a roll", "as wished"}},
		{"retires a replica that is wished instead of one too many", seeing(keepTheLast), []string{"as wished"}},
		{"goes on with a roll whatever there is to wait for", saying(rollAnyway), []string{"nothing that could wait while a shard suffers"}},
		{"rolls the primary before its replicas", saying(primaryFirst), []string{"one failover a shard"}},
		{"replaces several nodes at a time", saying(severalSurges), []string{"one surge at a time"}},
		{"deletes a node that leaves before it is forgotten", saying(deleteUnforgotten), []string{"forgotten before it is deleted"}},
		{"moves slots while a shard has no primary", saying(moveRegardless), []string{"slots only to who is well"}},
		{"gives the slots of a dead primary away that has a replica", saying(replaceFirst), []string{"no slots to an empty node while a copy lives"}},
		{"gives lost slots to two nodes", saying(replaceTwice), []string{"no slots to an empty node while a copy lives"}},
		{"attaches replicas to another shard", saying(attachElsewhere), []string{"replicas follow their own shard"}},
		{"acts on what its caches say", Hooks{Cached: true}, []string{"harm only from a live view"}},
		{"leaves the dead to the servers' own election", saying(leaveToServers), []string{"the dead are followed at once"}},
		{"asks two replicas of a shard at a time", saying(askTwo), []string{"one failover at a time"}},
		{"asks for votes for two shards at a time", Hooks{Next: saying(askForAll).Next, drill: twoAtOnce()}, []string{"one vote at a time"}},
		{"accepts losses in place of the user", seeing(func(s *plan.State) { s.LossAccepted = true }), []string{
			"no slots to an empty node while a copy lives", "no deletion of a copy", "no deletion by a manager that is cut off",
		}},
		{"gives the silent no time", seeing(impatient), []string{"the silent are given time"}},
		{"does not remember which slots a shard had", seeing(func(s *plan.State) { s.Recorded = nil }), []string{"converges"}},
		{"calls a cluster complete that it waits for", saying(completeTooEarly), []string{"one owner"}},
	}
}

// answer returns what a node answered, with its own row.
func answer(s plan.State, node string) (reply topology.Reply, self topology.Member, ok bool) {
	i := slices.IndexFunc(s.Replies, func(r topology.Reply) bool { return r.Node == node && r.Err == nil })
	if i < 0 {
		return reply, self, false
	}
	self, ok = s.Replies[i].Self()
	return s.Replies[i], self, ok
}

// primaries returns the nodes that are to stay and own slots by their own word.
func primaries(s plan.State) []plan.Node {
	return slices.DeleteFunc(slices.Clone(s.Nodes), func(n plan.Node) bool {
		_, self, ok := answer(s, n.Name)
		return !ok || n.Dead() || n.Lifecycle == v1alpha1.LifecycleLeaving || self.Role != topology.RolePrimary || self.Slots.Empty()
	})
}

// lately reports whether a failover of a shard may still be under way.
func lately(s plan.State, shard int32) bool {
	ago, ok := s.Failovers[shard]
	return ok && ago < 12*time.Second
}

// rollPrimary hands over from an outdated primary to a replica in sync that is, or
// is not, outdated as well.
func rollPrimary(s plan.State, outdatedToo bool, which func(plan.Node) bool) (plan.Decision, bool) {
	for _, from := range primaries(s) {
		_, owner, _ := answer(s, from.Name)
		if from.Outdated == "" || lately(s, from.Position.Shard) || !which(from) {
			continue
		}
		for _, to := range s.Nodes {
			r, self, ok := answer(s, to.Name)
			if !ok || self.PrimaryID != owner.ID || !r.Replication.InSync() || !to.InSync || to.Dead() || to.Lifecycle != v1alpha1.LifecycleActive {
				continue
			}
			if (to.Outdated != "") == outdatedToo {
				return plan.Decision{Actions: []plan.Action{{
					Kind: plan.Failover, Node: to.Name, Position: to.Position, Target: from.Name, Reason: "a mistake",
				}}}, true
			}
		}
	}
	return plan.Decision{}, false
}

func neverAsks(a plan.Action) plan.Action {
	if a.Kind == plan.Failover && a.Mode == plan.Graceful {
		a.Mode = plan.Force
	}
	return a
}

// drainTheFirst takes the first shard and the last for each other while there are
// too many.
func drainTheFirst(s *plan.State) {
	last := int32(0)
	for _, n := range s.Nodes {
		last = max(last, n.Position.Shard)
	}
	if s.Creating || last < s.Target.Shards {
		return
	}
	for i := range s.Nodes {
		switch at := &s.Nodes[i].Position; at.Shard {
		case 0:
			at.Shard = last
		case last:
			at.Shard = 0
		}
	}
}

// keepTheLast takes the last node of a shard that is wished for the one that is too
// many.
func keepTheLast(s *plan.State) {
	if s.Creating {
		return
	}
	last := map[int32]int32{}
	for _, n := range s.Nodes {
		last[n.Position.Shard] = max(last[n.Position.Shard], n.Position.Index)
	}
	for i := range s.Nodes {
		at := &s.Nodes[i].Position
		switch last := last[at.Shard]; {
		case last <= s.Target.ReplicasPerShard:
		case at.Index == last:
			at.Index = s.Target.ReplicasPerShard
		case at.Index == s.Target.ReplicasPerShard:
			at.Index = last
		}
	}
}

func rollAnyway(s plan.State, d plan.Decision) plan.Decision {
	if d.Waiting == "" || s.Creating {
		return d
	}
	if roll, ok := rollPrimary(s, false, func(plan.Node) bool { return true }); ok {
		return roll
	}
	return d
}

// primaryFirst hands over to a replica that is outdated itself before that one is
// replaced, once a shard.
func primaryFirst(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) != 1 || !surge(s, d.Actions[0]) {
		return d
	}
	if roll, ok := rollPrimary(s, true, func(n plan.Node) bool { return n.Position.Index == 0 }); ok {
		return roll
	}
	return d
}

// surge reports whether a node is to be made beside one that lives.
func surge(s plan.State, a plan.Action) bool {
	return a.Kind == plan.CreateNode && slices.ContainsFunc(s.Nodes, func(n plan.Node) bool {
		return n.Position == a.Position && n.Outdated != "" && !n.Dead() && n.Lifecycle != v1alpha1.LifecycleLeaving
	})
}

// severalSurges adds to the node that a roll makes the one that it would make next
// in another shard.
func severalSurges(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) != 1 || !surge(s, d.Actions[0]) {
		return d
	}
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if s.Nodes[i].Position.Shard == d.Actions[0].Position.Shard {
			s.Nodes[i].Outdated = ""
		}
	}
	if more := plan.Next(s); len(more.Actions) == 1 && surge(s, more.Actions[0]) {
		d.Actions = append(slices.Clone(d.Actions), more.Actions...)
	}
	return d
}

func deleteUnforgotten(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) == 0 || d.Actions[0].Kind != plan.Forget {
		return d
	}
	for _, n := range s.Nodes {
		if n.Lifecycle == v1alpha1.LifecycleLeaving && n.NodeID == d.Actions[0].TargetID {
			return plan.Decision{Actions: []plan.Action{{Kind: plan.DeleteNode, Node: n.Name, Reason: "a mistake"}}}
		}
	}
	return d
}

// moveRegardless moves a slot while the planner waits, and some slots have no owner
// that answers.
func moveRegardless(s plan.State, d plan.Decision) plan.Decision {
	owners := primaries(s)
	if d.Waiting == "" || s.Creating || len(owners) < 2 {
		return d
	}
	var served slots.Set
	for _, n := range owners {
		_, self, _ := answer(s, n.Name)
		served = served.Union(self.Slots)
	}
	if served.Equal(slots.All()) {
		return d
	}
	from, to := owners[0], owners[1]
	_, source, _ := answer(s, from.Name)
	first := source.Slots.Ranges()[0].Start
	_, target, _ := answer(s, to.Name)
	return plan.Decision{Actions: []plan.Action{{
		Kind: plan.MoveSlots, Node: from.Name, Target: to.Name, TargetID: target.ID,
		Slots: slots.FromRanges(slots.Range{Start: first, End: first}), Reason: "a mistake",
	}}}
}

// replaceFirst gives the slots of a primary whose replica is to be promoted to a
// primary that there is.
func replaceFirst(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) == 0 || d.Actions[0].Kind != plan.Failover || d.Actions[0].Mode == plan.Graceful || s.Creating {
		return d
	}
	i := slices.IndexFunc(s.Nodes, func(n plan.Node) bool { return n.Name == d.Actions[0].Target && n.NodeID != "" })
	if i < 0 {
		return d
	}
	for _, n := range primaries(s) {
		r, _, _ := answer(s, n.Name)
		for _, m := range r.Members {
			if m.ID == s.Nodes[i].NodeID && !m.Slots.Empty() {
				return plan.Decision{Actions: []plan.Action{{Kind: plan.ReplaceLost, Node: n.Name, Position: n.Position, Slots: m.Slots, Reason: "a mistake"}}}
			}
		}
	}
	return d
}

func replaceTwice(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) == 0 || d.Actions[0].Kind != plan.ReplaceLost {
		return d
	}
	for _, n := range primaries(s) {
		if again := d.Actions[0]; n.Name != again.Node {
			again.Node, again.Position = n.Name, n.Position
			d.Actions = append(slices.Clone(d.Actions), again)
			return d
		}
	}
	return d
}

func attachElsewhere(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) == 0 || d.Actions[0].Kind != plan.Replicate {
		return d
	}
	d.Actions = slices.Clone(d.Actions)
	for i, a := range d.Actions {
		_, self, _ := answer(s, a.Node)
		for _, n := range primaries(s) {
			if _, other, _ := answer(s, n.Name); other.ID != a.TargetID && other.ID != self.ID {
				d.Actions[i].Target, d.Actions[i].TargetID = n.Name, other.ID
			}
		}
	}
	return d
}

func leaveToServers(_ plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) > 0 && d.Actions[0].Kind == plan.Failover && d.Actions[0].Mode == plan.Force {
		return plan.Decision{Waiting: "the servers elect somebody"}
	}
	return d
}

func askTwo(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) != 1 || d.Actions[0].Kind != plan.Failover || d.Actions[0].Mode == plan.Graceful {
		return d
	}
	_, self, _ := answer(s, d.Actions[0].Node)
	for _, n := range s.Nodes {
		_, row, ok := answer(s, n.Name)
		if again := d.Actions[0]; ok && n.InSync && n.Name != again.Node && row.PrimaryID == self.PrimaryID {
			again.Node = n.Name
			d.Actions = append(slices.Clone(d.Actions), again)
		}
	}
	return d
}

// twoAtOnce is the death of two primaries at once where most others live.
func twoAtOnce() *drill {
	return &drill{shards: 5, replicas: 1, operation: operation{name: "kill two primaries", run: func(w *world, done func()) bool {
		w.truth.fault()
		killed := 0
		for _, p := range w.runningPods() {
			if killed < 2 && !p.process.isReplica() {
				p.process.kill("two die together")
				killed++
			}
		}
		w.after(time.Second, done)
		return killed == 2
	}}}
}

// askForAll adds to a forced failover those that would come next in other shards.
func askForAll(s plan.State, d plan.Decision) plan.Decision {
	if len(d.Actions) != 1 || d.Actions[0].Kind != plan.Failover || d.Actions[0].Mode != plan.Force {
		return d
	}
	asked := map[int32]time.Duration{d.Actions[0].Position.Shard: time.Second}
	s.Failovers = asked
	if more := plan.Next(s); len(more.Actions) == 1 && more.Actions[0].Kind == plan.Failover && more.Actions[0].Mode == plan.Force {
		d.Actions = append(slices.Clone(d.Actions), more.Actions...)
	}
	return d
}

func impatient(s *plan.State) {
	for i := range s.Nodes {
		s.Nodes[i].Silent *= 30
	}
}

func completeTooEarly(_ plan.State, d plan.Decision) plan.Decision {
	if d.Waiting != "" {
		return plan.Decision{Complete: true}
	}
	return d
}
