package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// table builds the rows of one viewer: the row of self gets the flag myself.
func table(self string, rows ...string) string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		if strings.HasPrefix(row, self+" ") {
			fields := strings.Fields(row)
			fields[2] = "myself," + fields[2]
			row = strings.Join(fields, " ")
		}
		lines[i] = row
	}
	return strings.Join(lines, "\n")
}

func reply(t *testing.T, node, id, ip string, rows ...string) Reply {
	t.Helper()
	return Reply{Node: node, PodIP: ip, ID: withIDs(id), Members: parse(t, table(id, rows...)), Info: ClusterInfo{State: StateOK}}
}

func unreachable(node, id, ip string) Reply {
	return Reply{Node: node, PodIP: ip, ID: withIDs(id), Err: errors.New("dial tcp: connection refused")}
}

// rows of three shards without replicas.
var threeShards = []string{
	"AAAA 10.0.0.1:6379@16379 master - 0 0 1 connected 0-5461",
	"BBBB 10.0.0.2:6379@16379 master - 0 0 2 connected 5462-10922",
	"CCCC 10.0.0.3:6379@16379 master - 0 0 3 connected 10923-16383",
}

func threeReplies(t *testing.T, rows ...string) []Reply {
	t.Helper()
	return []Reply{
		reply(t, "c-a", "AAAA", "10.0.0.1", rows...),
		reply(t, "c-b", "BBBB", "10.0.0.2", rows...),
		reply(t, "c-c", "CCCC", "10.0.0.3", rows...),
	}
}

func staleIDs(v View) []string {
	var ids []string
	for _, m := range v.Stale() {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestAHealthyClusterAgrees(t *testing.T) {
	v := Merge(threeReplies(t, threeShards...))
	if !v.AllAgree() || !v.UncoveredSlots().Empty() || !v.UnassignedSlots().Empty() || !v.Disagreements().Empty() || len(v.Stale()) != 0 {
		t.Errorf("difference %q, uncovered %q, disagreements %q, stale %v", v.FirstDifference(), v.UncoveredSlots(), v.Disagreements(), v.Stale())
	}
	n, ok := v.ByID(idB)
	if !ok || n.Node != "c-b" || n.Slots.String() != "5462-10922" || n.Role != RolePrimary || n.ConfigEpoch != 2 || n.State != StateOK || !n.Reachable {
		t.Errorf("got %+v", n)
	}
	if v.Owner(16383) != idC || v.Owner(0) != idA {
		t.Errorf("owners %v", v.Owners)
	}
}

// T-04
func TestAMemberWithoutAddressServesNothingAndIsStale(t *testing.T) {
	rows := []string{threeShards[0], threeShards[2], "DDDD :0@0 master,noaddr - 1658754833817 1658754833000 3 disconnected 5462-10922"}
	v := Merge([]Reply{reply(t, "c-a", "AAAA", "10.0.0.1", rows...), reply(t, "c-c", "CCCC", "10.0.0.3", rows...)})
	if v.Alive(idD) {
		t.Error("it counts as alive")
	}
	if got := v.UncoveredSlots().String(); got != "5462-10922" {
		t.Errorf("uncovered %q", got)
	}
	if !v.UnassignedSlots().Empty() {
		t.Errorf("slots with a dead owner count as never assigned: %q", v.UnassignedSlots())
	}
	if diff := cmp.Diff([]string{idD}, staleIDs(v)); diff != "" {
		t.Errorf("stale (-want +got)\n%s", diff)
	}
	if address, ok := v.Stale()[0].DialAddress(); ok {
		t.Errorf("would dial %q", address)
	}
}

// sixNodes are rows of three shards with a replica each; addresses end in the
// position of the node.
func sixNodes(flags string, link string) []string {
	format := []string{
		"AAAA 10.0.0.1:6379@16379 master%s - 0 0 1 %s 0-5461",
		"BBBB 10.0.0.2:6379@16379 master%s - 0 0 2 %s 5462-10922",
		"CCCC 10.0.0.3:6379@16379 master%s - 0 0 3 %s 10923-16383",
		"DDDD 10.0.0.4:6379@16379 slave%s AAAA 0 0 1 %s",
		"EEEE 10.0.0.5:6379@16379 slave%s BBBB 0 0 2 %s",
		"FFFF 10.0.0.6:6379@16379 slave%s CCCC 0 0 3 %s",
	}
	rows := make([]string, len(format))
	for i, f := range format {
		rows[i] = fmt.Sprintf(f, flags, link)
	}
	return rows
}

// T-07
func TestANodeThatAloneSuspectsAllOthersIsTheIsolatedOne(t *testing.T) {
	healthy := sixNodes("", "connected")
	lonely := sixNodes(",fail?", "disconnected")
	lonely[3] = healthy[3]
	var replies []Reply
	for i, id := range []string{"AAAA", "BBBB", "CCCC", "DDDD", "EEEE", "FFFF"} {
		rows := healthy
		if id == "DDDD" {
			rows = lonely
		}
		replies = append(replies, reply(t, "c-"+strings.ToLower(id[:1]), id, fmt.Sprintf("10.0.0.%d", i+1), rows...))
	}
	v := Merge(replies)
	for name, n := range v.Nodes {
		if n.Isolated != (name == "c-d") {
			t.Errorf("%s: Isolated = %v", name, n.Isolated)
		}
		if len(n.SuspectedBy)+len(n.FailedBy) != 0 {
			t.Errorf("%s is suspected by %v %v on the word of an isolated node", name, n.SuspectedBy, n.FailedBy)
		}
		if !v.Alive(n.ID) {
			t.Errorf("%s counts as dead", name)
		}
	}
	if len(v.Stale()) != 0 || !v.UncoveredSlots().Empty() {
		t.Errorf("stale %v, uncovered %q", v.Stale(), v.UncoveredSlots())
	}
	if got, want := v.FirstDifference(), "c-d sees c-a as fail?"; got != want {
		t.Errorf("difference %q, want %q", got, want)
	}
}

func TestNobodyIsIsolatedWhenNobodySeesAnybody(t *testing.T) {
	a := "AAAA 10.0.0.1:6379@16379 master%s - 0 0 1 %s 0-16383"
	b := "BBBB 10.0.0.2:6379@16379 slave%s AAAA 0 0 1 %s"
	ok := func(row string) string { return fmt.Sprintf(row, "", "connected") }
	bad := func(row string) string { return fmt.Sprintf(row, ",fail?", "disconnected") }

	v := Merge([]Reply{reply(t, "c-a", "AAAA", "10.0.0.1", ok(a), bad(b)), reply(t, "c-b", "BBBB", "10.0.0.2", bad(a), ok(b))})
	if v.Nodes["c-a"].Isolated || v.Nodes["c-b"].Isolated {
		t.Error("two nodes that suspect each other: one is called isolated")
	}
	if diff := cmp.Diff([]string{"c-b"}, v.Nodes["c-a"].SuspectedBy); diff != "" {
		t.Errorf("suspected by (-want +got)\n%s", diff)
	}

	v = Merge([]Reply{reply(t, "c-a", "AAAA", "10.0.0.1", ok(a), ok(b)), reply(t, "c-b", "BBBB", "10.0.0.2", bad(a), ok(b))})
	if v.Nodes["c-a"].Isolated || !v.Nodes["c-b"].Isolated {
		t.Error("the node that is seen but sees nobody must be the isolated one")
	}

	v = Merge([]Reply{reply(t, "c-a", "AAAA", "10.0.0.1", ok(a)), reply(t, "c-b", "BBBB", "10.0.0.2", "BBBB :6379@16379 master - 0 0 0 connected")})
	if v.Nodes["c-a"].Isolated || v.Nodes["c-b"].Isolated {
		t.Error("nodes that never met are called isolated")
	}
}

// T-08
func TestRowsInHandshakeAreNoMembers(t *testing.T) {
	one := append(slices.Clone(threeShards), "DDDD 172.25.197.16:6379@16379 handshake - 0 0 0 connected")
	two := append(slices.Clone(threeShards), "EEEE 172.25.197.16:6379@16379 handshake - 0 0 0 connected")
	for _, rows := range [][]string{one, two} {
		v := Merge(threeReplies(t, rows...))
		if len(v.Stale()) != 0 || len(v.Nodes) != 3 || !v.AllAgree() {
			t.Errorf("stale %v, nodes %d, difference %q", v.Stale(), len(v.Nodes), v.FirstDifference())
		}
		if len(v.Nodes["c-a"].Knows) != 3 {
			t.Errorf("table %v", v.Nodes["c-a"].Knows)
		}
	}
}

// T-11
func TestOfTwoIDsAtOneAddressTheOneThatAnswersIsTheNode(t *testing.T) {
	dead := "AAAA 192.168.51.35:6379@16379 slave,fail CCCC 0 1 1 disconnected"
	live := "BBBB 192.168.51.35:6379@16379 slave CCCC 0 1 1 connected"
	primary := "CCCC 192.168.51.1:6379@16379 master - 0 0 1 connected 0-16383"
	for _, rows := range [][]string{{dead, live, primary}, {live, dead, primary}} {
		v := Merge([]Reply{reply(t, "c-b", "BBBB", "192.168.51.35", rows...), reply(t, "c-c", "CCCC", "192.168.51.1", rows...)})
		if n, ok := v.ByID(idB); !ok || n.Node != "c-b" {
			t.Errorf("B is %+v", n)
		}
		if diff := cmp.Diff([]string{idA}, staleIDs(v)); diff != "" {
			t.Errorf("stale (-want +got)\n%s", diff)
		}
	}
}

func TestARowAtTheAddressOfANodeThatNeverAnsweredIsNotStale(t *testing.T) {
	rows := append(slices.Clone(threeShards), "DDDD 10.0.0.4:6379@16379 slave AAAA 0 0 1 connected")
	replies := append(threeReplies(t, rows...), unreachable("c-d", "", "10.0.0.4"))
	if v := Merge(replies); len(v.Stale()) != 0 {
		t.Errorf("stale %v: would forget a node that may be alive", v.Stale())
	}
	replies[3] = unreachable("c-d", "", "10.0.0.9")
	if diff := cmp.Diff([]string{idD}, staleIDs(Merge(replies))); diff != "" {
		t.Errorf("stale (-want +got)\n%s", diff)
	}
	replies[3] = unreachable("c-d", "DDDD", "10.0.0.9")
	if v := Merge(replies); len(v.Stale()) != 0 {
		t.Errorf("stale %v: the ID is a node's", v.Stale())
	}
}

func permutations(replies []Reply) [][]Reply {
	if len(replies) < 2 {
		return [][]Reply{replies}
	}
	var all [][]Reply
	for i := range replies {
		rest := slices.Concat(replies[:i], replies[i+1:])
		for _, p := range permutations(rest) {
			all = append(all, append([]Reply{replies[i]}, p...))
		}
	}
	return all
}

// T-14
func TestOfTwoOwnersTheOneWithTheHigherEpochCountsInEveryOrder(t *testing.T) {
	c := "CCCC 10.0.0.3:6379@16379 master - 0 0 3 connected 10923-16383"
	old := []string{"AAAA 10.0.0.1:6379@16379 master - 0 0 1 connected 0-5461 10922", "BBBB 10.0.0.2:6379@16379 master - 0 0 2 connected 5462-10921", c}
	current := []string{"AAAA 10.0.0.1:6379@16379 master - 0 0 1 connected 0-5461", "BBBB 10.0.0.2:6379@16379 master - 0 0 2 connected 5462-10922", c}
	replies := []Reply{
		reply(t, "c-a", "AAAA", "10.0.0.1", old...),
		reply(t, "c-b", "BBBB", "10.0.0.2", current...),
		reply(t, "c-c", "CCCC", "10.0.0.3", current...),
	}
	orders := permutations(replies)
	if len(orders) != 6 {
		t.Fatalf("%d orders", len(orders))
	}
	for _, order := range orders {
		v := Merge(order)
		if v.Owner(10922) != idB || v.Nodes["c-a"].Slots.Contains(10922) || !v.Nodes["c-b"].Slots.Contains(10922) {
			t.Errorf("owner of 10922 is %s", v.Owner(10922))
		}
		if got := v.Disagreements().String(); got != "10922" {
			t.Errorf("disagreements %q", got)
		}
		if got, want := v.FirstDifference(), "slot map disagreement: 10922"; v.AllAgree() || got != want {
			t.Errorf("difference %q, want %q", got, want)
		}
	}
}

func TestOfTwoOwnersWithOneEpochTheSmallerIDCounts(t *testing.T) {
	both := []string{"AAAA 10.0.0.1:6379@16379 master - 0 0 5 connected%s", "BBBB 10.0.0.2:6379@16379 master - 0 0 5 connected%s"}
	v := Merge([]Reply{
		reply(t, "c-b", "BBBB", "10.0.0.2", fmt.Sprintf(both[0], ""), fmt.Sprintf(both[1], " 0-16383")),
		reply(t, "c-a", "AAAA", "10.0.0.1", fmt.Sprintf(both[0], " 0-16383"), fmt.Sprintf(both[1], "")),
	})
	if v.Owner(7) != idA {
		t.Errorf("owner %s", v.Owner(7))
	}
}

func TestANodeKnowsBestWhatItDoesNotOwn(t *testing.T) {
	current := "BBBB 10.0.0.2:6379@16379 master - 0 0 2 connected 5463-10922"
	behind := slices.Clone(threeShards)
	rows := []string{threeShards[0], current, threeShards[2]}
	v := Merge([]Reply{reply(t, "c-a", "AAAA", "10.0.0.1", behind...), reply(t, "c-b", "BBBB", "10.0.0.2", rows...), reply(t, "c-c", "CCCC", "10.0.0.3", behind...)})
	if got := v.UnassignedSlots().String(); got != "5462" {
		t.Errorf("unassigned %q", got)
	}
	if got := v.Disagreements().String(); got != "5462" {
		t.Errorf("disagreements %q", got)
	}
}

func TestSlotsOfAFailedPrimaryAreUncoveredUntilItsReplicaOwnsThem(t *testing.T) {
	rows := sixNodes("", "connected")
	rows[0] = "AAAA 10.0.0.1:6379@16379 master,fail - 0 0 1 disconnected 0-5461"
	before := []Reply{unreachable("c-a", "AAAA", "10.0.0.1")}
	after := []Reply{unreachable("c-a", "AAAA", "10.0.0.1")}
	promoted := slices.Clone(rows)
	promoted[0] = "AAAA 10.0.0.1:6379@16379 master,fail - 0 0 1 disconnected"
	promoted[3] = "DDDD 10.0.0.4:6379@16379 master - 0 0 9 connected 0-5461"
	for i, id := range []string{"BBBB", "CCCC", "DDDD", "EEEE", "FFFF"} {
		name, ip := "c-"+strings.ToLower(id[:1]), fmt.Sprintf("10.0.0.%d", i+2)
		before = append(before, reply(t, name, id, ip, rows...))
		after = append(after, reply(t, name, id, ip, promoted...))
	}

	v := Merge(before)
	if got := v.UncoveredSlots().String(); got != "0-5461" {
		t.Errorf("uncovered %q", got)
	}
	dead := v.Nodes["c-a"]
	if dead.Reachable || dead.Err == nil || dead.Role != RolePrimary || dead.Slots.String() != "0-5461" || dead.ConfigEpoch != 1 {
		t.Errorf("the dead primary as the others see it: %+v", dead)
	}
	if diff := cmp.Diff([]string{"c-b", "c-c", "c-d", "c-e", "c-f"}, dead.FailedBy); diff != "" {
		t.Errorf("failed by (-want +got)\n%s", diff)
	}
	if replicas := v.ReplicasOf(idA); len(replicas) != 1 || replicas[0].Node != "c-d" {
		t.Errorf("replicas of A: %v", replicas)
	}

	v = Merge(after)
	if !v.UncoveredSlots().Empty() || v.Nodes["c-d"].Slots.String() != "0-5461" || !dead.Slots.Equal(Merge(before).Nodes["c-a"].Slots) {
		t.Errorf("uncovered %q, promoted %+v", v.UncoveredSlots(), v.Nodes["c-d"])
	}
	if len(v.ReplicasOf(idA)) != 0 {
		t.Errorf("replicas of the dead: %v", v.ReplicasOf(idA))
	}
}

func TestANodeThatOnlyTheManagerCannotReachStillServes(t *testing.T) {
	replies := threeReplies(t, threeShards...)
	replies[1] = unreachable("c-b", "BBBB", "10.0.0.2")
	if v := Merge(replies); !v.UncoveredSlots().Empty() || !v.AllAgree() {
		t.Errorf("uncovered %q, difference %q", v.UncoveredSlots(), v.FirstDifference())
	}
	suspected := slices.Clone(threeShards)
	suspected[1] = "BBBB 10.0.0.2:6379@16379 master,fail? - 0 0 2 disconnected 5462-10922"
	replies = threeReplies(t, suspected...)
	replies[1] = unreachable("c-b", "BBBB", "10.0.0.2")
	if v := Merge(replies); v.UncoveredSlots().String() != "5462-10922" {
		t.Errorf("a node that nobody reaches: uncovered %q", v.UncoveredSlots())
	}
}

func TestANodeThatAnswersButFailedForTheOthersServesNobody(t *testing.T) {
	rows := slices.Clone(threeShards)
	rows[1] = "BBBB 10.0.0.2:6379@16379 master,fail - 0 0 2 connected 5462-10922"
	replies := threeReplies(t, rows...)
	replies[1] = reply(t, "c-b", "BBBB", "10.0.0.2", threeShards...)
	if v := Merge(replies); v.UncoveredSlots().String() != "5462-10922" {
		t.Errorf("uncovered %q", v.UncoveredSlots())
	}
	replies[0] = reply(t, "c-a", "AAAA", "10.0.0.1", threeShards...)
	if v := Merge(replies); !v.UncoveredSlots().Empty() {
		t.Errorf("one viewer that is behind: uncovered %q", v.UncoveredSlots())
	}
}

func TestWhatKeepsNodesFromAgreeingIsSaid(t *testing.T) {
	with := func(change string, row int) []Reply {
		rows := slices.Clone(threeShards)
		rows[row] = change
		replies := threeReplies(t, threeShards...)
		replies[0] = reply(t, "c-a", "AAAA", "10.0.0.1", rows...)
		return replies
	}
	for want, replies := range map[string][]Reply{
		"c-d has not answered yet":    append(threeReplies(t, threeShards...), unreachable("c-d", "", "")),
		"no node answers":             {unreachable("c-a", "AAAA", "10.0.0.1")},
		"c-a doesn't know c-b":        {reply(t, "c-a", "AAAA", "10.0.0.1", threeShards[0]), reply(t, "c-b", "BBBB", "10.0.0.2", threeShards...)},
		"c-a has no address of c-b":   with("BBBB :0@0 master,noaddr - 0 0 2 connected 5462-10922", 1),
		"c-a sees c-b as fail":        with("BBBB 10.0.0.2:6379@16379 master,fail - 0 0 2 connected 5462-10922", 1),
		"c-a sees c-b as fail?":       with("BBBB 10.0.0.2:6379@16379 master,fail? - 0 0 2 connected 5462-10922", 1),
		"c-a has no link to c-b":      with("BBBB 10.0.0.2:6379@16379 master - 0 0 2 disconnected 5462-10922", 1),
		"c-a takes c-b for a replica": with("BBBB 10.0.0.2:6379@16379 slave AAAA 0 0 2 connected 5462-10922", 1),
		"c-a takes c-b for a node without a role, but it is a primary":                with("BBBB 10.0.0.2:6379@16379 noflags - 0 0 2 connected 5462-10922", 1),
		fmt.Sprintf("c-a takes c-d for a replica of %s, but it follows %s", idA, idB): differentPrimaries(t),
		"slot map disagreement: 5462-5470":                                            with("BBBB 10.0.0.2:6379@16379 master - 0 0 2 connected 5471-10922", 1),
	} {
		if got := Merge(replies).FirstDifference(); !strings.HasPrefix(got, want) || Merge(replies).AllAgree() {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func differentPrimaries(t *testing.T) []Reply {
	t.Helper()
	rows := append(slices.Clone(threeShards), "DDDD 10.0.0.4:6379@16379 slave BBBB 0 0 2 connected")
	replies := append(threeReplies(t, rows...), reply(t, "c-d", "DDDD", "10.0.0.4", rows...))
	replies[0] = reply(t, "c-a", "AAAA", "10.0.0.1", append(slices.Clone(threeShards), "DDDD 10.0.0.4:6379@16379 slave AAAA 0 0 1 connected")...)
	return replies
}

// E-03
func TestNodesAreMatchedByIDWhateverAddressClientsAreTold(t *testing.T) {
	rows := []string{
		"AAAA 203.0.113.5:31234@16379,shard-0.example.com master - 0 0 1 connected 0-8191",
		"BBBB 203.0.113.5:31235@16379,shard-1.example.com master - 0 0 2 connected 8192-16383",
	}
	v := Merge([]Reply{reply(t, "c-a", "AAAA", "10.0.0.1", rows...), reply(t, "c-b", "BBBB", "10.0.0.2", rows...)})
	if len(v.Stale()) != 0 || !v.AllAgree() || v.Nodes["c-b"].PodIP != "10.0.0.2" {
		t.Errorf("stale %v, difference %q", v.Stale(), v.FirstDifference())
	}
}

func TestAnEmptyObservationIsAnEmptyView(t *testing.T) {
	v := Merge(nil)
	if !v.UncoveredSlots().Equal(slots.All()) || len(v.Nodes) != 0 || len(v.Stale()) != 0 || len(v.Reachable()) != 0 {
		t.Errorf("got %+v", v)
	}
}
