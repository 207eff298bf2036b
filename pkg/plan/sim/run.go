package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// patience is how long a cluster may take to be as wished once nothing is done to
// it any more: five minutes for an eviction, as long for a replacement that has to
// wait, and time to do the rest.
const patience = 20 * time.Minute

// Result of a run.
type Result struct {
	Seed uint64
	// Err says which check failed and how; nil if none did.
	Err error
	// Check is the name of the check that failed.
	Check string
	Stats Stats
}

// Run lives through the schedule of a seed.
func Run(seed uint64, opt Options) Result {
	w := newWorld(seed, opt)
	w.begin()
	for w.truth.wrong == nil && !w.done {
		if w.now > w.deadline() {
			w.truth.violation("converges", "after %s without a fault: %s", patience, w.standing())
			break
		}
		if !w.step() {
			w.truth.violation("converges", "nothing happens any more")
		}
	}
	w.stats.Virtual = w.now
	r := Result{Seed: seed, Err: w.truth.wrong, Check: w.truth.check, Stats: w.stats}
	if r.Err != nil {
		r.Err = fmt.Errorf("seed %d: %w", seed, r.Err)
	}
	return r
}

func (w *world) deadline() time.Duration {
	if w.calm == never {
		return w.lastStep + time.Hour
	}
	return w.calm + patience
}

// standing says what the manager waits for.
func (w *world) standing() string {
	d := w.m.last
	switch {
	case d.Waiting != "":
		return "waiting: " + d.Waiting
	case len(d.Actions) > 0:
		return fmt.Sprintf("%s %s: %s", d.Actions[0].Kind, d.Actions[0].Node, d.Actions[0].Reason)
	case d.Complete:
		return "the planner calls it complete, but " + w.missing().Error()
	}
	return "nothing was decided"
}

// judge looks at the end of every pass whether the run is over: the planner calls
// the cluster complete, twice in a row with time between, and it is.
func (w *world) judge(d plan.Decision) {
	if !d.Complete {
		w.completeSince = never
		w.askHuman()
		return
	}
	w.wish.lossAccepted = false
	if w.completeSince == never {
		w.completeSince = w.now
	}
	if w.calm == never || w.now-w.completeSince < 8*time.Second || w.now-w.calm < 8*time.Second {
		return
	}
	if w.missing() != nil {
		return
	}
	w.client.stopped = true
	w.done = true
	w.truth.final()
}

// missing says what a complete cluster still lacks by the objects alone.
func (w *world) missing() error {
	if got, want := len(w.api.nodes), int(w.wish.shards*(w.wish.replicas+1)); got != want {
		return fmt.Errorf("there are %d nodes, not %d", got, want)
	}
	for _, n := range w.api.sortedNodes() {
		if p := w.api.pods[n.name]; p == nil || p.deleted != never || p.phase != plan.PodRunning {
			return errors.New("node " + n.name + " has no pod that runs")
		}
	}
	return nil
}

// askHuman acts for the user where the manager has said for a while that it waits
// for one: it accepts a loss, or deletes the pod of a server that hangs when most
// others don't answer either.
func (w *world) askHuman() {
	if w.calm == never || w.now-w.calm < 2*time.Minute || w.m.lastState == nil {
		return
	}
	awaited := plan.AwaitedCopies(*w.m.lastState)
	hung := w.namedHung()
	if len(awaited) == 0 && hung == "" || w.wish.lossAccepted {
		w.awaitedSince = never
		return
	}
	if w.awaitedSince == never {
		w.awaitedSince = w.now
	}
	if w.now-w.awaitedSince < time.Minute {
		return
	}
	if len(awaited) > 0 {
		w.say("the user accepts the loss: %s", awaited[0])
		w.stats.count("loss accepted by the user")
		w.wish.lossAccepted = true
		return
	}
	w.say("the user deletes the pod of %s, which hangs", hung)
	w.stats.count("hung pod deleted by the user")
	w.deletePod(hung, "it hangs")
}

// namedHung returns a node that hangs and that the manager names as what it waits
// for, while no more than half of all answer.
func (w *world) namedHung() string {
	hung, all, name := 0, 0, ""
	for _, n := range w.api.sortedNodes() {
		s, ok := w.process(n.name)
		if !ok {
			continue
		}
		all++
		if s.hung {
			hung++
			if strings.Contains(w.m.last.Waiting, n.name) {
				name = n.name
			}
		}
	}
	if 2*hung < all {
		return ""
	}
	return name
}
