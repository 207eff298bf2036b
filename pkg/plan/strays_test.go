package plan_test

import (
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// a new node that the servers of another cluster have met first, as it has the
// address of a dead one of theirs, is taken back. It is not introduced, and is told
// to forget nobody: both would reach the other cluster.
func TestANodeThatAnotherClusterHasDrawnInIsTakenBack(t *testing.T) {
	const foreign = "ffffffffffffffffffffffffffffffffffffffff"
	for what, row := range map[string]topology.Member{
		"it is a member there": {ID: foreign, IP: "10.9.9.9", Role: topology.RolePrimary, LinkUp: true},
		"it is just being met": {ID: foreign, IP: "10.9.9.9", Handshake: true},
	} {
		w := newWorld(t, 3, 1)
		w.settle()
		w.kill(w.replicasOf(0)[0].Name)
		joiner := ""
		for joiner == "" {
			for _, a := range plan.Next(w.Observe()).Actions {
				w.do(a)
				if a.Kind == plan.CreateNode {
					joiner = a.Node
				}
			}
		}
		w.node(joiner).Pod = plan.PodRunning
		s := w.Observe()
		at := replyOf(t, s, joiner)
		at.Members = append(at.Members, row)
		taken := false
		for _, a := range plan.Next(s).Actions {
			switch {
			case a.Kind == plan.DeleteNode && a.Node == joiner && strings.Contains(a.Reason, foreign):
				taken = true
			default:
				t.Errorf("%s: %s %s: %s", what, a.Kind, a.Node, a.Reason)
			}
		}
		if !taken {
			t.Errorf("%s: node %s stays: %+v", what, joiner, plan.Next(s))
		}

		// The same row in the table of a node that has been introduced is no reason: it
		// may be of a member that was forgotten.
		s = w.Observe()
		at = replyOf(t, s, joiner)
		friend := s.Replies[0]
		at.Members = append(at.Members, row, topology.Member{ID: friend.ID, IP: friend.PodIP, LinkUp: true})
		for _, a := range plan.Next(s).Actions {
			if a.Kind == plan.DeleteNode {
				t.Errorf("%s, but so are ours: %s %s: %s", what, a.Kind, a.Node, a.Reason)
			}
		}
	}
}

// nor is it introduced when only its address tells that somebody may try it.
func TestANodeAtAnAddressThatAnotherClusterMayTryIsTakenBack(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.settle()
	w.kill(w.replicasOf(0)[0].Name)
	for _, a := range w.until(plan.CreateNode) {
		w.do(a)
		w.node(a.Node).Pod = plan.PodRunning
		s := w.Observe()
		s.Claimed = map[string]string{a.Node: "node d-00000 of cluster d in namespace m"}
		d := plan.Next(s)
		if len(d.Actions) != 1 || d.Actions[0].Kind != plan.DeleteNode || d.Actions[0].Node != a.Node || !strings.Contains(d.Actions[0].Reason, "d-00000") {
			t.Errorf("decided %+v", d)
		}
	}
	w.settle()
	s := w.Observe()
	s.Claimed = map[string]string{}
	for _, n := range s.Nodes {
		s.Claimed[n.Name] = "somebody"
	}
	if d := plan.Next(s); !d.Complete {
		t.Errorf("members that have joined are touched: %+v", d)
	}
}

func replyOf(t *testing.T, s plan.State, name string) *topology.Reply {
	t.Helper()
	for i := range s.Replies {
		if s.Replies[i].Node == name {
			return &s.Replies[i]
		}
	}
	t.Fatalf("node %s does not answer", name)
	return nil
}
