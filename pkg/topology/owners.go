package topology

import (
	"maps"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// claim is one viewer's word that a node owns a slot.
type claim struct {
	id    string
	epoch uint64
}

// ownership is a claim with the slots that it is about.
type ownership struct {
	claim
	slots slots.Set
}

// beats decides between claims as servers do: the higher config epoch wins. Of two
// nodes with the same epoch the one with the smaller ID takes a new epoch, so it
// is about to win.
func (c claim) beats(other claim) bool {
	if c.epoch != other.epoch {
		return c.epoch > other.epoch
	}
	return c.id < other.id
}

// mergeOwners settles who owns each slot, and where viewers differ.
func (v *View) mergeOwners() {
	v.Owners = map[string]slots.Set{}
	var taken slots.Set
	for _, c := range v.claims() {
		if owned := c.slots.Minus(taken); !owned.Empty() {
			v.Owners[c.id] = v.Owners[c.id].Union(owned)
			taken = taken.Union(owned)
		}
	}
	v.disputed = v.findDisputed()
}

// claims collects what the viewers say of who owns what, the strongest word first.
// Viewers mostly say the same, so there are few.
func (v *View) claims() []ownership {
	said := map[claim]slots.Set{}
	for _, viewer := range v.viewers {
		for id, m := range viewer.Knows {
			if m.Slots.Empty() {
				continue
			}
			c := claim{id: id, epoch: m.ConfigEpoch}
			if before := said[c]; !before.Equal(m.Slots) {
				said[c] = before.Union(m.Slots)
			}
		}
	}
	out := make([]ownership, 0, len(said))
	for c, set := range said {
		out = append(out, ownership{claim: c, slots: set.Minus(v.denied(c.id))})
	}
	slices.SortFunc(out, func(a, b ownership) int {
		if a.beats(b.claim) {
			return -1
		}
		return 1
	})
	return out
}

// denied are the slots that a node says it doesn't own: about itself it knows
// best, the others may be behind.
func (v View) denied(id string) slots.Set {
	n, ok := v.byID[id]
	if !ok || !n.Reachable {
		return slots.Set{}
	}
	self, ok := n.Knows[id]
	if !ok {
		return slots.Set{}
	}
	return slots.All().Minus(self.Slots)
}

// findDisputed compares every viewer's slot map with the first one's. Viewers that
// know only themselves have no opinion on the rest.
func (v View) findDisputed() slots.Set {
	var first map[string]slots.Set
	disputed := slots.Set{}
	for _, viewer := range v.viewers {
		if len(viewer.Knows) < 2 && len(v.viewers) > 1 {
			continue
		}
		if first == nil {
			first = viewer.owners()
		} else if !viewer.agrees(first) {
			disputed = disputed.Union(differing(first, viewer.owners()))
		}
	}
	return disputed
}

// owners are the slots of each member in the node's table.
func (n *NodeView) owners() map[string]slots.Set {
	owners := map[string]slots.Set{}
	for id, m := range n.Knows {
		if !m.Slots.Empty() {
			owners[id] = m.Slots
		}
	}
	return owners
}

// agrees is whether the node's table has just these owners.
func (n *NodeView) agrees(owners map[string]slots.Set) bool {
	same := 0
	for id, m := range n.Knows {
		if m.Slots.Empty() {
			continue
		}
		if !m.Slots.Equal(owners[id]) {
			return false
		}
		same++
	}
	return same == len(owners)
}

// differing are the slots that don't have the same owner in both maps.
func differing(a, b map[string]slots.Set) slots.Set {
	var same, all slots.Set
	for id, set := range a {
		same = same.Union(set.Intersect(b[id]))
		all = all.Union(set)
	}
	for _, set := range b {
		all = all.Union(set)
	}
	return all.Minus(same)
}

// Disagreements are the slots whose owner differs between viewers.
func (v View) Disagreements() slots.Set { return v.disputed }

// Owner is the ID of the slot's owner, empty if no table names one.
func (v View) Owner(slot int) string {
	for id, set := range v.Owners {
		if set.Contains(slot) {
			return id
		}
	}
	return ""
}

// UnassignedSlots are the slots that no reachable node's table gives to anyone.
// An unreachable node may still hold some: with nobody reachable, all are.
func (v View) UnassignedSlots() slots.Set {
	free := slots.All()
	for _, set := range v.Owners {
		free = free.Minus(set)
	}
	return free
}

// UncoveredSlots are the slots that nobody serves: those without an owner, and
// those whose owner is not alive.
func (v View) UncoveredSlots() slots.Set {
	uncovered := v.UnassignedSlots()
	for _, id := range slices.Sorted(maps.Keys(v.Owners)) {
		if !v.Alive(id) {
			uncovered = uncovered.Union(v.Owners[id])
		}
	}
	return uncovered
}

// Alive is whether the member takes part in the cluster: a node that answers,
// unless most viewers agree that it failed, or one that doesn't answer the manager
// but is seen by a viewer that isn't isolated.
func (v View) Alive(id string) bool {
	if n, ok := v.byID[id]; ok && n.Reachable {
		return 2*len(n.FailedBy) <= v.opinions(n)
	}
	for _, viewer := range v.viewers {
		if m, knows := viewer.Knows[id]; knows && !viewer.Isolated && m.SeenAlive() {
			return true
		}
	}
	return false
}

// opinions counts the viewers whose word on n counts.
func (v View) opinions(n *NodeView) int {
	count := 0
	for _, viewer := range v.viewers {
		if _, knows := viewer.Knows[n.ID]; knows && viewer != n && !viewer.Isolated {
			count++
		}
	}
	return count
}
