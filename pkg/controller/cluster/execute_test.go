package cluster

import (
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

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
