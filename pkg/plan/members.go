package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// createNodes fills every wished position that no living node has.
func createNodes(m *model) ([]Action, string) {
	filled := map[Position]bool{}
	for _, n := range m.live() {
		filled[n.Position] = true
	}
	var actions []Action
	var held string
	names := map[string]bool{}
	for shard := range m.Target.Shards {
		for index := range m.Target.ReplicasPerShard + 1 {
			p := Position{Shard: shard, Index: index}
			if filled[p] {
				continue
			}
			if hold, ok := m.Holds[p]; ok && hold.Remaining > 0 {
				held = hold.Reason
				continue
			}
			actions = append(actions, m.createNode(p, names))
		}
	}
	if len(actions) == 0 && held != "" && m.Creating {
		return nil, held
	}
	return actions, ""
}

// createNode decides name and join type of one new node.
func (m *model) createNode(p Position, taken map[string]bool) Action {
	a := Action{
		Kind: CreateNode, Position: p, JoinType: v1alpha1.JoinShard,
		Reason: fmt.Sprintf("shard %d has no node %d", p.Shard, p.Index),
	}
	if dead, ok := m.lastDead(p); ok {
		a.Predecessor = dead.Name
		a.Reason = fmt.Sprintf("node %s of shard %d is dead%s", dead.Name, p.Shard, detail(dead))
	}
	if _, ok := m.owner(p.Shard); ok {
		a.JoinType = v1alpha1.JoinReplica
	} else if a.Predecessor != "" {
		a.JoinType = v1alpha1.JoinPrimary
	}
	a.Node = m.freeName(p, a.Predecessor, taken)
	return a
}

// freeName returns the first name for a position that no other node has, and no pod of
// a former one that still ends: a pod takes long to go, and its place is needed now.
func (m *model) freeName(p Position, predecessor string, taken map[string]bool) string {
	for attempt := 0; ; attempt++ {
		name := NodeName(m.State, p, predecessor, attempt)
		if _, exists := m.byName[name]; !exists && !taken[name] && !m.Former[name] {
			taken[name] = true
			return name
		}
	}
}

// lastDead returns the youngest dead node of a position.
func (m *model) lastDead(p Position) (Node, bool) {
	var last Node
	found := false
	for _, n := range m.nodes {
		if n.Position == p && n.Dead() && (!found || n.Age < last.Age) {
			last, found = n, true
		}
	}
	return last, found
}

// dropSuperseded deletes nodes that died before they joined once a later one has
// their position. The last of them stays until a node is Active: it says what
// went wrong.
func dropSuperseded(m *model) ([]Action, string) {
	var actions []Action
	for _, n := range m.nodes {
		if !n.Dead() || n.Lifecycle != v1alpha1.LifecycleJoining || m.listed(n.NodeID) {
			continue
		}
		if last, _ := m.lastDead(n.Position); last.Name != n.Name {
			actions = append(actions, Action{
				Kind: DeleteNode, Node: n.Name,
				Reason: fmt.Sprintf("node %s died before it joined and was replaced by %s", n.Name, last.Name),
			})
		}
	}
	return actions, ""
}

// waitForNodes holds a new cluster until every node of it answers, so that no
// slot is handed out before it is known who owns what.
func waitForNodes(m *model) ([]Action, string) {
	if !m.Creating {
		return nil, ""
	}
	for _, n := range m.live() {
		v, seen := m.View.Nodes[n.Name]
		switch {
		case n.Pod == PodNone:
			return nil, fmt.Sprintf("node %s has no pod yet%s", n.Name, detail(n))
		case n.Pod == PodPending || n.PodIP == "":
			return nil, fmt.Sprintf("pod %s is pending%s", n.Name, detail(n))
		case !seen:
			return nil, fmt.Sprintf("node %s was not asked yet", n.Name)
		case !v.Reachable:
			return nil, fmt.Sprintf("node %s does not answer: %v", n.Name, v.Err)
		}
	}
	return nil, ""
}

func detail(n Node) string {
	if n.Detail == "" {
		return ""
	}
	return ": " + n.Detail
}

// introduce makes every node known to every other. Small clusters send all pairs,
// which is what makes a mesh fastest; large ones introduce everybody to one node
// and let gossip do the rest.
func introduce(m *model) ([]Action, string) {
	nodes := m.reachable()
	const allPairs = 30
	var actions []Action
	for i, a := range nodes {
		if len(nodes) > allPairs && i > 0 {
			break
		}
		for _, b := range nodes[i+1:] {
			if m.acquainted(a, b) || b.PodIP == "" {
				continue
			}
			actions = append(actions, Action{
				Kind: Introduce, Node: a.Name, Target: b.Name, TargetIP: b.PodIP,
				Reason: fmt.Sprintf("nodes %s and %s don't know each other", a.Name, b.Name),
			})
		}
	}
	return actions, ""
}

// acquainted reports whether two nodes have each other in their tables and are
// not cut off.
func (m *model) acquainted(a, b Node) bool {
	va, vb := m.view(a), m.view(b)
	if va.Isolated != vb.Isolated {
		return false
	}
	_, ab := va.Knows[vb.ID]
	_, ba := vb.Knows[va.ID]
	return ab && ba
}

// forgetDead removes members that will never come back from the tables of all
// others, but not while they own slots: voters have to know a dead primary until
// its replica is elected, and slots without any owner would be lost silently.
func forgetDead(m *model) ([]Action, string) {
	alive, known := m.alive()
	if !known {
		return nil, ""
	}
	var actions []Action
	for _, viewer := range m.reachable() {
		for _, member := range strangers(m.view(viewer).Knows, alive) {
			if member.Myself || m.needed(member.ID) {
				continue
			}
			if m.view(viewer).PrimaryID == member.ID {
				continue // the server answers "Can't forget my master!"
			}
			if m.willHear(member) {
				continue // without its row the viewer would take the slots for unserved, and refuse writes
			}
			actions = append(actions, Action{
				Kind: Forget, Node: viewer.Name, TargetID: member.ID,
				Reason: fmt.Sprintf("member %s belongs to no node of the cluster any more", member.ID),
			})
		}
	}
	return actions, ""
}

// willHear reports whether a row still gives slots to a member that somebody has taken
// over with a higher epoch: the next word of the new owner puts that right. One with a
// lower epoch is not believed, so such a row has to go.
func (m *model) willHear(row topology.Member) bool {
	return slices.ContainsFunc(m.reachable(), func(n Node) bool {
		own := m.view(n).Knows[m.view(n).ID]
		return own.ConfigEpoch > row.ConfigEpoch && !own.Slots.Intersect(row.Slots).Empty()
	})
}

// alive returns the IDs of all nodes that live and stay. Known is false while the ID of a
// running one is not known: it may be any member, so none can be called dead.
func (m *model) alive() (ids map[string]bool, known bool) {
	ids = map[string]bool{}
	for _, n := range m.nodes {
		if n.Dead() || n.Lifecycle == v1alpha1.LifecycleLeaving {
			continue
		}
		switch v, ok := m.View.Nodes[n.Name]; {
		case ok && v.ID != "":
			ids[v.ID] = true
		case n.NodeID != "":
			ids[n.NodeID] = true
		case n.Pod == PodRunning:
			return nil, false
		}
	}
	return ids, true
}

// needed reports whether some node still counts on a member: a replica follows it,
// slots are on their way from it or to it, or it owns some. In a cluster that never was complete slots alone are no
// reason, they are handed out again; nor are they in a shard that is lost for good,
// or when a node that answers claims them: it was given them in its place, but has
// not been able to tell everybody.
func (m *model) needed(id string) bool {
	if giving, taking, _ := m.migrating(); giving[id] || taking[id] {
		return true
	}
	dead, known := m.byNodeID(id)
	for _, n := range m.nodes {
		if m.unheard(n) && (!known || n.Position.Shard == dead.Position.Shard) {
			return true // the one that does not answer may follow it
		}
	}
	given := m.lost
	for _, n := range m.reachable() {
		given = given.Union(m.view(n).Knows[m.view(n).ID].Slots)
	}
	for _, viewer := range m.reachable() {
		v := m.view(viewer)
		if v.PrimaryID == id {
			return true
		}
		if row, ok := v.Knows[id]; ok && !row.Slots.Empty() && !m.Creating && !row.Slots.Minus(given).Empty() {
			return true
		}
	}
	return false
}

// unheard reports whether a node runs, but does not answer.
func (m *model) unheard(n Node) bool {
	v := m.view(n)
	return n.Pod == PodRunning && !n.Dead() && n.Lifecycle == v1alpha1.LifecycleActive && (v == nil || !v.Reachable)
}

// strangers returns the members that are not among the living, sorted by ID.
func strangers(rows map[string]topology.Member, alive map[string]bool) []topology.Member {
	var out []topology.Member
	for id, r := range rows {
		if !alive[id] {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b topology.Member) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
