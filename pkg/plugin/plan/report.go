package plan

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// Report is what "plan NAME" prints as JSON or YAML. Its form is stable: fields are
// added, never renamed or removed.
type Report struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Forecast is always true: nothing of this has happened, and it may come
	// otherwise.
	Forecast bool `json:"forecast"`
	// Changes that the forecast is for, over the cluster's spec.
	Changes []Change `json:"changes"`
	Manager Manager  `json:"manager"`
	// Requests to the manager that are not answered for good.
	Requests []string `json:"requests,omitempty"`
	// Effect in numbers.
	Effect Effect `json:"effect"`
	// Steps in their order.
	Steps []Step `json:"steps"`
	// Moves of slots between shards, each pair of them once.
	Moves []Move `json:"moves"`
	// Replaced nodes with why.
	Replaced []Replacement `json:"replaced"`
	// Live are the settings that running servers are given.
	Live []LiveSetting `json:"liveSettings"`
	// Shards before and after.
	Shards []Shard `json:"shards"`
	// ShardsAlike are rolled one after the other like the one before them in the
	// steps; their own steps are left out.
	ShardsAlike []int32 `json:"shardsAlike,omitempty"`
	// Waiting is why the forecast ends before the cluster is as wished.
	Waiting string `json:"waiting,omitempty"`
	// Notes are worth knowing, or say what could not be read.
	Notes []string `json:"notes,omitempty"`
}

// Change is one field of the spec.
type Change struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// Manager is what the manager itself says.
type Manager struct {
	// Doing is what it does, waits for, or is stopped by; empty when it has nothing to
	// do.
	Doing string `json:"doing,omitempty"`
	// Held is why it changes nothing at the moment.
	Held string `json:"held,omitempty"`
	// Observed is whether it has looked at the spec as it is now.
	Observed bool `json:"observed"`
}

// Effect counts.
type Effect struct {
	NodesCreated  int `json:"nodesCreated"`
	NodesReplaced int `json:"nodesReplaced"`
	NodesRetired  int `json:"nodesRetired"`
	Failovers     int `json:"failovers"`
	SlotsMoved    int `json:"slotsMoved"`
	SlotsLost     int `json:"slotsLost"`
}

// Move is all that goes from one shard to another.
type Move struct {
	From  int32  `json:"from"`
	To    int32  `json:"to"`
	Slots string `json:"slots"`
	Count int    `json:"slotCount"`
}

// Replacement is a node that another one takes the place of.
type Replacement struct {
	Node  string `json:"node"`
	Shard int32  `json:"shard"`
	// Role is primary or replica, as far as it is known.
	Role string `json:"role"`
	// By is the new node; empty where the steps are left out.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason"`
}

// LiveSetting is a setting that is changed on running servers.
type LiveSetting struct {
	Setting string `json:"setting"`
	// From are the values in force; empty for the server's own.
	From []string `json:"from"`
	To   string   `json:"to"`
	// Nodes that get it.
	Nodes int `json:"nodes"`
}

// Shard is one shard before and after.
type Shard struct {
	Index       int32  `json:"index"`
	SlotsBefore string `json:"slotsBefore"`
	CountBefore int    `json:"slotCountBefore"`
	SlotsAfter  string `json:"slotsAfter"`
	CountAfter  int    `json:"slotCountAfter"`
	NodesBefore int    `json:"nodesBefore"`
	NodesAfter  int    `json:"nodesAfter"`
	Failovers   int    `json:"failovers"`
}

// newReport makes the forecast of a snapshot for a wish.
func newReport(s *inspect.Snapshot, w *wish, now time.Time) (*Report, error) {
	c := s.Cluster
	state := stateOf(s, w, now)
	f, err := foresee(state, c, w)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Namespace: c.Namespace, Name: c.Name, Forecast: true, Changes: w.changes, Manager: managerOf(c, now),
		Requests: requests(c), Waiting: waiting(f), ShardsAlike: f.alike, Live: w.live(s),
	}
	r.Steps = steps(f)
	r.Moves = moves(r.Steps)
	r.Replaced = replaced(s, f)
	r.Shards = shards(f, r)
	r.Effect = effect(f, r)
	r.Notes = notes(s, w)
	return r, nil
}

// managerOf takes the manager's own words.
func managerOf(c *v1alpha1.ValkeyCluster, now time.Time) Manager {
	m := Manager{Doing: output.Clean(inspect.NextAction(c)), Observed: c.Status.ObservedGeneration >= c.Generation && c.Status.ObservedGeneration > 0}
	p := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case c.Spec.Paused:
		m.Held, m.Doing = "spec.paused is true: it changes nothing until the cluster is resumed", ""
	case c.Status.State == v1alpha1.StateInvalid:
		m.Held, m.Doing = output.Clean(c.Status.Message), ""
	case inspect.ManagerHint(c, now) != "":
		m.Held = inspect.ManagerHint(c, now)
	case p != nil && p.Status != metav1.ConditionTrue && p.Reason != v1alpha1.ReasonComplete:
		m.Held, m.Doing = m.Doing, "" // a reference is missing, or a name is taken
	}
	return m
}

// requests are those that are not answered for good, with what is said of them.
func requests(c *v1alpha1.ValkeyCluster) []string {
	var out []string
	for _, r := range request.Of(c) {
		if _, open := request.Open(c, r.Verb); !open {
			continue
		}
		text := strings.Join(append([]string{r.Verb}, r.Args...), " ")
		if a, answered := r.Answer(c); answered && a.Message != "" {
			text += " (" + a.Message + ")"
		}
		out = append(out, output.Clean(text))
	}
	return out
}

// waiting is why the forecast ends early. A copy that may be alive is what counts.
func waiting(f foresight) string {
	if f.Waiting == "" {
		return ""
	}
	if awaited := plan.AwaitedCopies(f.End); len(awaited) > 0 && !f.End.LossAccepted {
		return output.Clean(strings.Join(awaited, "; ") + ", which is waited for until the loss is acknowledged")
	}
	return output.Clean(f.Waiting)
}

func notes(s *inspect.Snapshot, w *wish) []string {
	var out []string
	for _, p := range w.problems {
		out = append(out, "whether nodes differ from their config is not known: "+output.Clean(p))
	}
	for _, n := range w.notes {
		out = append(out, output.Clean(n))
	}
	c := meta.FindStatusCondition(s.Cluster.Status.Conditions, v1alpha1.ConditionConfigResolved)
	if c != nil && c.Status == metav1.ConditionFalse && len(w.problems) == 0 {
		out = append(out, "the manager says of the config: "+output.Clean(c.Message))
	}
	if s.Pods.Err != nil {
		out = append(out, "pods that are pending or dead are not told from others: "+output.Clean(s.Pods.Err.Error()))
	}
	return out
}

// moves adds up what goes from one shard to another.
func moves(list []Step) []Move {
	out := []Move{}
	sets := map[[2]int32]slots.Set{}
	var order [][2]int32
	for _, step := range list {
		if step.Action != string(plan.MoveSlots) {
			continue
		}
		pair := [2]int32{step.Shard, *step.ToShard}
		if _, known := sets[pair]; !known {
			order = append(order, pair)
		}
		sets[pair] = sets[pair].Union(step.set)
	}
	for _, pair := range order {
		out = append(out, Move{From: pair[0], To: pair[1], Slots: sets[pair].String(), Count: sets[pair].Len()})
	}
	return out
}

// replaced lists the nodes that are there at the start and whose position another
// one has at the end, or would have if all steps had been followed.
func replaced(s *inspect.Snapshot, f foresight) []Replacement {
	out := []Replacement{}
	roles := map[string]string{}
	for _, n := range s.NodeList() {
		roles[n.Name] = n.Role
	}
	for _, n := range f.start.Nodes {
		after, there := nodeAt(f.End, n)
		why := n.Outdated
		switch {
		case there && why != "" && slices.Contains(f.alike, n.Position.Shard):
		case there, after == "": // it stays, or its position goes with it
			continue
		case n.Dead():
			why = orElse(n.Detail, "it is dead")
		}
		out = append(out, Replacement{Node: n.Name, Shard: n.Position.Shard, Role: roles[n.Name], By: after, Reason: output.Clean(why)})
	}
	slices.SortStableFunc(out, func(a, b Replacement) int { return int(a.Shard - b.Shard) })
	return out
}

// nodeAt returns whether a node is still there in a state, and else which one has
// its position.
func nodeAt(s plan.State, n plan.Node) (other string, there bool) {
	for _, m := range s.Nodes {
		if m.Name == n.Name {
			return "", true
		}
		if m.Position == n.Position {
			other = m.Name
		}
	}
	return other, false
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// effect counts what changes. Shards whose steps are left out count as those that
// were followed: each outdated node is replaced, each outdated primary hands over.
func effect(f foresight, r *Report) Effect {
	e := Effect{NodesReplaced: len(r.Replaced)}
	followed := 0 // replacements whose steps are told
	for _, n := range r.Replaced {
		if n.By != "" {
			followed++
		}
	}
	e.NodesCreated = missing(f.End.Nodes, f.start.Nodes) - followed
	e.NodesRetired = missing(f.start.Nodes, f.End.Nodes) - followed
	for _, m := range r.Moves {
		e.SlotsMoved += m.Count
	}
	for _, s := range r.Shards {
		e.Failovers += s.Failovers
	}
	for _, step := range r.Steps {
		if step.Action == string(plan.ReplaceLost) {
			e.SlotsLost += step.set.Len()
		}
	}
	return e
}

// missing counts the nodes that are not among others.
func missing(nodes, others []plan.Node) int {
	n := 0
	for _, node := range nodes {
		if !slices.ContainsFunc(others, func(o plan.Node) bool { return o.Name == node.Name }) {
			n++
		}
	}
	return n
}

// shards compares the start with the end.
func shards(f foresight, r *Report) []Shard {
	count := f.End.Target.Shards
	for _, n := range f.start.Nodes {
		count = max(count, n.Position.Shard+1)
	}
	out := make([]Shard, count)
	for i := range out {
		index := int32(i)
		out[i] = Shard{Index: index, SlotsBefore: f.start.Recorded[index].String(), CountBefore: f.start.Recorded[index].Len()}
	}
	view := topology.Merge(f.End.Replies)
	for _, n := range f.End.Nodes {
		v := view.Nodes[n.Name]
		if v == nil || v.Slots.Empty() {
			continue
		}
		shard := &out[n.Position.Shard]
		shard.SlotsAfter, shard.CountAfter = v.Slots.String(), v.Slots.Len()
		if n.Outdated != "" && slices.Contains(f.alike, n.Position.Shard) {
			shard.Failovers++
		}
	}
	for _, n := range f.start.Nodes {
		out[n.Position.Shard].NodesBefore++
	}
	for _, n := range f.End.Nodes {
		out[n.Position.Shard].NodesAfter++
	}
	for _, step := range r.Steps {
		if step.Action == string(plan.Failover) {
			out[step.Shard].Failovers++
		}
	}
	return out
}
