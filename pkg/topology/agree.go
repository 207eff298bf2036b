package topology

import (
	"fmt"
	"maps"
	"slices"
)

// AllAgree is whether the nodes are of one mind: each knows every other one, has a
// link to it and no suspicion, sees it in the role that it has by its own word,
// and gives every slot to the same owner. A node that has never answered can't be
// known by the others, so there is no agreement before it does.
func (v View) AllAgree() bool { return v.FirstDifference() == "" }

// FirstDifference says in words why the nodes don't agree, for example "c-1a2b3
// sees c-4d5e6 as fail?". It is empty when they do. Which difference is reported
// depends on the names only.
func (v View) FirstDifference() string {
	names := slices.Sorted(maps.Keys(v.Nodes))
	for _, name := range names {
		if v.Nodes[name].ID == "" {
			return fmt.Sprintf("%s has not answered yet", name)
		}
	}
	if len(v.viewers) == 0 && len(names) > 0 {
		return "no node answers"
	}
	for _, viewer := range v.viewers {
		for _, name := range names {
			if text := difference(viewer, v.Nodes[name]); text != "" {
				return text
			}
		}
	}
	if !v.disputed.Empty() {
		return "slot map disagreement: " + v.disputed.String()
	}
	return ""
}

// difference between what viewer and n say about n.
func difference(viewer, n *NodeView) string {
	m, knows := viewer.Knows[n.ID]
	switch {
	case viewer == n:
		return ""
	case !knows:
		return fmt.Sprintf("%s doesn't know %s", viewer.Node, n.Node)
	case m.NoAddr:
		return fmt.Sprintf("%s has no address of %s", viewer.Node, n.Node)
	case m.Failed:
		return fmt.Sprintf("%s sees %s as fail", viewer.Node, n.Node)
	case m.PFail:
		return fmt.Sprintf("%s sees %s as fail?", viewer.Node, n.Node)
	case !m.LinkUp:
		return fmt.Sprintf("%s has no link to %s", viewer.Node, n.Node)
	case m.Role != n.Role:
		return fmt.Sprintf("%s takes %s for a %s, but it is a %s", viewer.Node, n.Node, orNoRole(m.Role), orNoRole(n.Role))
	case m.PrimaryID != n.PrimaryID:
		return fmt.Sprintf("%s takes %s for a replica of %s, but it follows %s", viewer.Node, n.Node, m.PrimaryID, n.PrimaryID)
	default:
		return ""
	}
}

func orNoRole(r Role) Role {
	if r == RoleUnknown {
		return "node without a role"
	}
	return r
}
