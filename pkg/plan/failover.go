package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

const (
	// nodeTimeout is cluster-node-timeout, which valkey.conf sets.
	nodeTimeout = 5 * time.Second
	// FailoverTimeout is cluster-manual-failover-timeout, which valkey.conf sets: a
	// failover that was asked for is over by then, one way or the other.
	FailoverTimeout = 2 * time.Second
)

const (
	// voteLock is how long a voter does not vote again on the same primary. A failover
	// that found too few votes is not asked for again before: the voters would be free
	// at different times, and never enough of them at once.
	voteLock = 2*nodeTimeout + 500*time.Millisecond
	// voting is how long two forced failovers are kept apart: a voter votes once in
	// an epoch, and two that begin together share theirs.
	voting = 200 * time.Millisecond
)

// asked reports whether a failover of a shard may still be under way.
func (m *model) asked(shard int32) bool {
	ago, ok := m.Failovers[shard]
	return ok && ago < FailoverTimeout
}

// askedInVain reports whether a planned failover of a shard has to wait, for the one
// before it is under way or found too few votes.
func (m *model) askedInVain(shard int32) bool {
	ago, ok := m.Failovers[shard]
	return ok && ago < voteLock
}

// mayForce reports whether a forced failover of a shard may be asked for now.
func (m *model) mayForce(shard int32) bool {
	for other, ago := range m.Failovers {
		if ago < voting || other == shard && ago < voteLock {
			return false
		}
	}
	return true
}

// handOverTerminating hands over a primary whose pod was told to stop, while its
// preStop still keeps it running. A second after that was learned it is left alone:
// the server's own failover on SIGTERM must not meet one of ours.
func handOverTerminating(m *model) ([]Action, string) {
	var actions []Action
	for _, n := range m.nodes {
		if n.Pod != PodRunning || !n.Terminating || n.TerminatingFor > time.Second || m.asked(n.Position.Shard) {
			continue
		}
		replica, ok := m.best(n.NodeID, true)
		if !ok || m.View.Owners[n.NodeID].Empty() {
			continue
		}
		actions = append(actions, Action{
			Kind: Failover, Node: replica.Name, Position: n.Position, Target: n.Name, Mode: Graceful,
			Reason: fmt.Sprintf("primary %s was told to stop, replica %s takes over shard %d", n.Name, replica.Name, n.Position.Shard),
		})
	}
	return actions, ""
}

// promote gives a new primary to every shard whose primary is lost and that the
// servers can't or need not elect one for by themselves. Those that need votes go
// one after the other.
func promote(m *model) ([]Action, string) {
	var actions []Action
	forced := false
	for _, id := range m.ownerIDs() {
		lost, known := m.byNodeID(id)
		if v, ok := m.View.ByID(id); ok && v.Reachable {
			continue
		}
		replica, ok := m.best(id, false)
		if !ok || m.asked(replica.Position.Shard) {
			continue
		}
		mode, why := m.mode(id, lost, known, replica)
		if why == "" || mode == Force && (forced || !m.mayForce(replica.Position.Shard)) {
			continue
		}
		forced = forced || mode == Force
		actions = append(actions, Action{
			Kind: Failover, Node: replica.Name, Position: replica.Position, Target: lost.Name, Mode: mode,
			Reason: fmt.Sprintf("%s; replica %s takes over shard %d", why, replica.Name, replica.Position.Shard),
		})
	}
	return actions, ""
}

// mode decides how a lost primary is followed, with the reason in words; no
// reason means that the server's own election is waited for.
func (m *model) mode(id string, lost Node, known bool, replica Node) (FailoverMode, string) {
	name := lost.Name
	if !known {
		name = "member " + id
	}
	proven := known && lost.Proven()
	if m.majority(replica) {
		if proven {
			return Force, fmt.Sprintf("primary %s is dead%s", name, detail(lost))
		}
		if r := m.view(replica).Replication; !r.LinkUp && r.LinkDownSeconds >= int64(electionMissed/time.Second) && !m.View.Alive(id) && !m.mayServe(id) {
			return Force, fmt.Sprintf("primary %s is gone for longer than an election takes, and the servers elected nobody", name)
		}
		return "", ""
	}
	if m.newerOwner(id, replica) {
		return "", ""
	}
	if proven {
		return Takeover, fmt.Sprintf("primary %s is dead and no majority of primaries is left to vote%s", name, detail(lost))
	}
	silent := !known || lost.Dead() || lost.Silent >= nodeTimeout
	if silent && m.suspectedByAll(id) && !m.view(replica).Replication.LinkUp {
		return Takeover, fmt.Sprintf("primary %s has not answered for %s, every node that does suspects it, and no majority of primaries is left to vote", name, nodeTimeout)
	}
	return "", ""
}

// newerOwner reports whether a node of a replica's shard that does not answer may
// have become the primary in place of the one that the replica follows: it was seen
// as one, or was not asked again yet. Nobody votes on a takeover, so that a replica
// of an old primary would take the shard back to what it was then.
func (m *model) newerOwner(id string, replica Node) bool {
	for _, n := range m.nodes {
		if n.Position.Shard != replica.Position.Shard || n.NodeID == id || n.Name == replica.Name || n.Proven() {
			continue
		}
		if v := m.view(n); v != nil && v.Reachable {
			continue
		}
		if n.Role == topology.RolePrimary || n.Pod == PodRunning && !n.Dead() && n.Silent < nodeTimeout && n.Lifecycle == v1alpha1.LifecycleActive {
			return true
		}
	}
	return false
}

// ownerIDs are the IDs of all members that own slots, sorted.
func (m *model) ownerIDs() []string {
	var ids []string
	for id, owned := range m.View.Owners {
		if !owned.Empty() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (m *model) byNodeID(id string) (Node, bool) {
	for _, n := range m.nodes {
		if n.NodeID == id {
			return n, true
		}
	}
	return Node{}, false
}

// majority reports whether more than half of the primaries that a replica knows to
// own slots can vote, which is what an election needs. One that does not answer the
// manager but that others see alive can.
func (m *model) majority(replica Node) bool {
	voters, alive := 0, 0
	for id, row := range m.view(replica).Knows {
		if row.Role != topology.RolePrimary || row.Slots.Empty() {
			continue
		}
		voters++
		n, known := m.byNodeID(id)
		v, seen := m.View.ByID(id)
		dead, cutOff := known && n.Proven(), seen && v.Isolated
		if m.View.Alive(id) && !dead && !cutOff {
			alive++
		}
	}
	return 2*alive > voters
}

// suspectedByAll reports whether every node that answers flags a member.
func (m *model) suspectedByAll(id string) bool {
	for _, viewer := range m.reachable() {
		if row, ok := m.view(viewer).Knows[id]; ok && !row.PFail && !row.Failed {
			return false
		}
	}
	return true
}

// electionOver is when the servers would have elected a replica by themselves: the
// node timeout, the vote of the majority, and the longest delay.
const electionOver = 15 * time.Second

// electionMissed is when the servers' own election is given up: a replica whose link
// is down for long does not stand for it any more, and tries again only seldom.
const electionMissed = 30 * time.Second

// best returns the replica of a primary that may be promoted: it was in sync
// (its readiness gate), it holds a whole copy, and of those it has the greatest
// offset. Connected asks for one that follows right now, to be handed what the
// primary has: there one that need not be replaced comes first.
//
// A copy that came into being while no manager ran has no gate. It is taken when
// there is no other, none may come back, and the servers did not elect it either.
func (m *model) best(primaryID string, connected bool) (Node, bool) {
	var candidates, spare []Node
	for _, n := range m.reachable() {
		v := m.view(n)
		if v.PrimaryID != primaryID || !v.Replication.HasCopy() {
			continue
		}
		switch {
		case connected && !v.Replication.InSync():
		case n.InSync:
			candidates = append(candidates, n)
		case !connected && v.Replication.LinkDownSeconds >= int64(electionOver/time.Second):
			spare = append(spare, n)
		}
	}
	if len(candidates) == 0 && len(spare) > 0 {
		if _, awaited := m.awaitedCopy(spare[0].Position.Shard); !awaited {
			candidates = spare
		}
	}
	if len(candidates) == 0 {
		return Node{}, false
	}
	stays := func(n Node) int {
		if connected && n.Outdated == "" {
			return 1
		}
		return 0
	}
	return slices.MaxFunc(candidates, func(a, b Node) int {
		return cmp.Or(cmp.Compare(stays(a), stays(b)), cmp.Compare(m.view(a).Replication.Offset, m.view(b).Replication.Offset), cmp.Compare(b.Name, a.Name))
	}), true
}

// Handover returns the action that makes a replica the primary of a shard: the
// node named, or the best one. The error says why there is none.
func Handover(s State, shard int32, node string) (Action, error) {
	m := newModel(s)
	primary, ok := m.owner(shard)
	if !ok {
		return Action{}, fmt.Errorf("shard %d has no primary that answers", shard)
	}
	if m.asked(shard) {
		return Action{}, fmt.Errorf("a failover of shard %d is under way, ask again in %s", shard, FailoverTimeout)
	}
	replica, ok := m.best(m.view(primary).ID, true)
	if node != "" {
		replica, ok = m.byName[node]
		v := m.view(replica)
		switch {
		case !ok || replica.Position.Shard != shard:
			return Action{}, fmt.Errorf("node %s is not in shard %d", node, shard)
		case node == primary.Name:
			return Action{}, fmt.Errorf("node %s is the primary of shard %d already", node, shard)
		case v == nil || !v.Reachable || !replica.InSync || !v.Replication.InSync():
			return Action{}, fmt.Errorf("replica %s is not in sync", node)
		}
	}
	if !ok {
		return Action{}, fmt.Errorf("shard %d has no replica in sync", shard)
	}
	return Action{
		Kind: Failover, Node: replica.Name, Position: replica.Position, Target: primary.Name, Mode: Graceful,
		Reason: fmt.Sprintf("a failover was asked for: replica %s takes over shard %d from %s", replica.Name, shard, primary.Name),
	}, nil
}

// Primary returns the node that owns a shard's slots.
func Primary(s State, shard int32) (string, bool) {
	n, ok := newModel(s).owner(shard)
	return n.Name, ok
}
