package topology

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// Reply is what one node said in one observation.
type Reply struct {
	// Node is the name of the ValkeyNode, which is its pod's name too.
	Node string
	// PodIP that was asked.
	PodIP string
	// Err is why the node could not be asked; then only ID may be set, to what the
	// node called itself before.
	Err error
	// ID is the answer to CLUSTER MYID.
	ID string
	// Members are the rows of CLUSTER NODES.
	Members []Member
	// Info is CLUSTER INFO.
	Info ClusterInfo
	// Replication is INFO replication.
	Replication Replication
	// Keys in all databases, of INFO keyspace.
	Keys int64
	// Migrations are the jobs of CLUSTER GETSLOTMIGRATIONS, newest first.
	Migrations []Migration
}

// Self is the node's row about itself.
func (r Reply) Self() (Member, bool) {
	for _, m := range r.Members {
		if m.Myself || r.ID != "" && m.ID == r.ID {
			return m, true
		}
	}
	return Member{}, false
}

// View is the merged truth of all replies. It doesn't depend on their order.
type View struct {
	// Nodes by ValkeyNode name: one for each reply.
	Nodes map[string]*NodeView
	// Owners are the slots of each node ID. Where viewers disagree, the claim with
	// the highest config epoch counts, as it does among the servers. The ID may
	// be one that no node has, for example a dead primary's.
	Owners map[string]slots.Set

	byID     map[string]*NodeView
	viewers  []*NodeView // reachable, sorted by name
	disputed slots.Set
}

// NodeView is what is known of one node.
type NodeView struct {
	// Node, PodIP and ID as in the Reply.
	Node, PodIP, ID string
	// Reachable is whether the node answered; Err is why not.
	Reachable bool
	Err       error
	// Role, PrimaryID and ConfigEpoch by the node's own word; those of an
	// unreachable node as the others see it.
	Role        Role
	PrimaryID   string
	ConfigEpoch uint64
	// Slots that the node owns in the merged truth, which may differ from what it
	// claims itself (Knows[ID].Slots).
	Slots slots.Set
	// State is ok or fail, the node's opinion of its cluster; empty if unreachable.
	State string
	// Info, Replication and Keys as in the Reply.
	Info        ClusterInfo
	Replication Replication
	Keys        int64
	// Knows are the rows of the node's table by ID, its own among them, those in
	// handshake left out.
	Knows map[string]Member
	// Isolated is whether the node sees none of the nodes that it knows, while they
	// see one another or see it. What an isolated node says of others counts for
	// nothing. A node that never met anyone (Knows holds only itself) isn't
	// isolated.
	Isolated bool
	// FailedBy and SuspectedBy are the names of the viewers, isolated ones left
	// out, that flag the node fail and fail?, sorted.
	FailedBy, SuspectedBy []string
}

// Merge makes the view of one observation.
func Merge(replies []Reply) View {
	v := View{Nodes: map[string]*NodeView{}, byID: map[string]*NodeView{}}
	sorted := slices.SortedFunc(slices.Values(replies), func(a, b Reply) int { return cmp.Compare(a.Node, b.Node) })
	for _, r := range sorted {
		n := newNodeView(r)
		v.Nodes[r.Node] = n
		if n.Reachable {
			v.viewers = append(v.viewers, n)
		}
		if known, taken := v.byID[n.ID]; n.ID != "" && (!taken || !known.Reachable && n.Reachable) {
			v.byID[n.ID] = n
		}
	}
	for _, n := range v.viewers {
		n.Isolated = v.isIsolated(n)
	}
	v.mergeOwners()
	for _, n := range v.Nodes {
		v.addOpinions(n)
		n.Slots = v.Owners[n.ID]
	}
	return v
}

func newNodeView(r Reply) *NodeView {
	n := &NodeView{Node: r.Node, PodIP: r.PodIP, ID: r.ID, Err: r.Err, Reachable: r.Err == nil, Knows: map[string]Member{}}
	if !n.Reachable {
		return n
	}
	n.State, n.Info, n.Replication, n.Keys = r.Info.State, r.Info, r.Replication, r.Keys
	for _, m := range r.Members {
		if !m.Handshake {
			n.Knows[m.ID] = m
		}
	}
	if self, ok := r.Self(); ok {
		n.ID = self.ID
		n.Role, n.PrimaryID, n.ConfigEpoch = self.Role, self.PrimaryID, self.ConfigEpoch
	}
	return n
}

// seesOthers tells how many reachable nodes other than itself n knows, and whether
// it has a working link to any of them.
func (v View) seesOthers(n *NodeView) (known int, sees bool) {
	for id, m := range n.Knows {
		other, ok := v.byID[id]
		if !ok || other == n || !other.Reachable {
			continue
		}
		known++
		sees = sees || m.SeenAlive()
	}
	return known, sees
}

func (v View) isIsolated(n *NodeView) bool {
	known, seesAny := v.seesOthers(n)
	if known == 0 || seesAny {
		return false
	}
	for _, other := range v.viewers {
		if other == n {
			continue
		}
		if _, sees := v.seesOthers(other); sees {
			return true
		}
	}
	return false
}

// addOpinions notes what the other viewers that count think of n.
func (v View) addOpinions(n *NodeView) {
	var latest *Member
	for _, viewer := range v.viewers {
		m, knows := viewer.Knows[n.ID]
		if !knows || viewer == n || viewer.Isolated {
			continue
		}
		if m.Failed {
			n.FailedBy = append(n.FailedBy, viewer.Node)
		}
		if m.PFail {
			n.SuspectedBy = append(n.SuspectedBy, viewer.Node)
		}
		if latest == nil || m.ConfigEpoch > latest.ConfigEpoch {
			latest = &m
		}
	}
	if !n.Reachable && latest != nil {
		n.Role, n.PrimaryID, n.ConfigEpoch = latest.Role, latest.PrimaryID, latest.ConfigEpoch
	}
}

// ByID finds the node that calls itself id.
func (v View) ByID(id string) (*NodeView, bool) {
	n, ok := v.byID[id]
	return n, ok
}

// Reachable are the nodes that answered, sorted by name.
func (v View) Reachable() []*NodeView { return slices.Clone(v.viewers) }

// ReplicasOf are the nodes that follow the primary with the ID, sorted by name.
func (v View) ReplicasOf(id string) []*NodeView {
	var replicas []*NodeView
	for _, name := range slices.Sorted(maps.Keys(v.Nodes)) {
		if n := v.Nodes[name]; n.Role == RoleReplica && n.PrimaryID == id {
			replicas = append(replicas, n)
		}
	}
	return replicas
}

// Stale are the members in any reachable node's table that belong to no node:
// dead ones to be forgotten. Rows without an address are among them, rows in
// handshake never. A row at the address of a node whose ID isn't known yet is
// not taken for stale, since it may be that node. Sorted by ID; of each, the row
// with the highest config epoch.
func (v View) Stale() []Member {
	unknownIPs := map[string]bool{}
	for _, n := range v.Nodes {
		if n.ID == "" && n.PodIP != "" {
			unknownIPs[n.PodIP] = true
		}
	}
	stale := map[string]Member{}
	for _, viewer := range v.viewers {
		for id, m := range viewer.Knows {
			if _, isNode := v.byID[id]; isNode || unknownIPs[m.IP] {
				continue
			}
			if seen, ok := stale[id]; !ok || m.ConfigEpoch > seen.ConfigEpoch {
				stale[id] = m
			}
		}
	}
	return slices.SortedFunc(maps.Values(stale), func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
}
