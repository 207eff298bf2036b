package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// scripted is a server that answers as told and notes what it is told to do.
type scripted struct {
	valkey.Node
	jobs    []topology.Migration
	members []topology.Member
	sent    []string
}

func (s *scripted) SlotMigrations(context.Context) ([]topology.Migration, error) { return s.jobs, nil }

func (s *scripted) Observe(context.Context) (topology.Reply, error) {
	return topology.Reply{Members: s.members}, nil
}

func (s *scripted) note(what string) error {
	s.sent = append(s.sent, what)
	return nil
}

func (s *scripted) MigrateSlots(_ context.Context, exports ...valkey.Export) error {
	var words []string
	for _, e := range exports {
		words = append(words, e.Slots.String()+" to "+e.TargetID)
	}
	return s.note("migrate " + strings.Join(words, ", "))
}

func (s *scripted) DeleteSlots(_ context.Context, set slots.Set) error {
	return s.note("delete " + set.String())
}

func (s *scripted) AddSlots(_ context.Context, set slots.Set) error {
	return s.note("add " + set.String())
}
func (s *scripted) BumpEpoch(context.Context) error { return s.note("bump") }

// A server that is source and target at once may crash.
func TestSlotsMoveOnlyBetweenServersThatAreFree(t *testing.T) {
	job := func(export bool, state string) []topology.Migration {
		return []topology.Migration{{Name: "1", Export: export, State: state}}
	}
	for _, c := range []struct {
		what           string
		source, target []topology.Migration
		busy           bool
	}{
		{"both are free", nil, nil, false},
		{"both were busy", job(true, "failed"), job(false, "success"), false},
		{"the source gives", job(true, "snapshotting"), nil, true},
		{"the source takes", job(false, "snapshotting"), nil, true},
		{"the target gives", nil, job(true, "a state of later servers"), true},
		{"the target takes", nil, job(false, "snapshotting"), false},
	} {
		source, target := &scripted{jobs: c.source}, &scripted{jobs: c.target}
		err := moveSlots(t.Context(), source, target, plan.Action{Slots: slots.Split(2)[0], Jobs: 2, TargetID: replicaID})
		if errors.Is(err, errUnderWay) != c.busy || !c.busy && err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if moved := len(source.sent) == 1 && source.sent[0] == "migrate 0-4095 to "+replicaID+", 4096-8191 to "+replicaID; moved == c.busy {
			t.Errorf("%s: sent %q", c.what, source.sent)
		}
	}
}

func TestLostSlotsAreTakenFromWhoeverTheNodeTakesForTheirOwner(t *testing.T) {
	halves := slots.Split(2)
	node := &scripted{members: []topology.Member{
		{ID: primaryID, Myself: true, Slots: slots.FromRanges(slots.Range{Start: 0, End: 9})}, // of an attempt that was cut short
		{ID: replicaID, Slots: slots.FromRanges(slots.Range{Start: 100, End: 199})},
	}}
	if err := replaceLost(t.Context(), node, halves[0]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"delete 100-199", "add 10-8191", "bump"}, node.sent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHowFarAReplicaIsBehindIsToldInSteps(t *testing.T) {
	for _, c := range []struct{ primary, replica, before, want int64 }{
		{5000, 5000, 1 << 20, 0},
		{1<<20 + 99, 100, 0, 0},
		{1<<20 + 100, 100, 0, 1 << 20},
		{5 << 20, 0, 0, 4 << 20},
		{1 << 30, 100 << 20, 0, 256 << 20},
		{100, 5 << 20, 4 << 20, 0}, // it was asked later than its primary
	} {
		o := healthy()
		for name, offset := range map[string]int64{"c-00000": c.primary, "c-11111": c.replica} {
			r := o.replies[name]
			r.Replication.Offset = offset
			o.reply(name, r)
		}
		if got := lag(o.view, o.view.Nodes["c-11111"], c.before); got != c.want {
			t.Errorf("%d of %d: %d, want %d", c.replica, c.primary, got, c.want)
		}
		if got := lag(o.view, o.view.Nodes["c-00000"], c.before); got != 0 {
			t.Errorf("the primary lags by %d", got)
		}
		o.reply("c-00000", topology.Reply{ID: primaryID, Err: errUnderWay})
		if got := lag(o.view, o.view.Nodes["c-11111"], c.before); got != c.before {
			t.Errorf("without its primary: %d, want what was known, %d", got, c.before)
		}
	}
}
