package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// Hooks change how the planner or the executor of a run works, so that a test can
// show that the checks notice. The zero value is the real thing.
type Hooks struct {
	// Next stands in for plan.Next.
	Next func(plan.State) plan.Decision
	// Before changes an action just before it is carried out.
	Before func(plan.Action) plan.Action
	// Hasty executors start migrations without asking what is under way.
	Hasty bool
	// Cached managers act on what their caches say, however far behind those are.
	Cached bool
	// drill stands in for the schedule.
	drill *drill
}

// Options of a run.
type Options struct {
	// Trace receives one line for each thing that happens, if it is not nil.
	Trace io.Writer
	Hooks Hooks
}

// wish is what the user wants of the cluster.
type wish struct {
	shards, replicas int32
	// image that all nodes are to run. Bad ones never start.
	image image
	// lossAccepted is the user's acknowledgement that lost data is lost.
	lossAccepted bool
	// handover is the shard that the user asks to be failed over, plus one.
	handover int32
}

// image is a generation of what rolls: image, resources, placement.
type image struct {
	generation int
	// bad ones never start, crashing ones end as soon as they have started.
	bad, crashing bool
}

// world is everything there is in one run.
type world struct {
	clock
	seed    uint64
	rand    *rand.Rand
	opt     Options
	wish    wish
	api     *api
	hosts   []*host
	servers []*server // every process that ever ran, in order of their starts
	net     network
	m       *manager
	client  *client
	truth   *truth
	quirks  quirks
	stats   Stats

	// calm is when the schedule ended, never before; lastStep when its last step
	// was taken. completeSince is since when the planner calls the cluster complete.
	// awaitedSince is since when the manager says that it waits for copies.
	calm, lastStep, completeSince, awaitedSince time.Duration
	done                                        bool
	// underWay counts operations that go on.
	underWay int
	// images counts those that were ever wished, migrations those that were begun.
	images, migrations int
}

// quirks are traits of this world that stay the same during a run.
type quirks struct {
	// syncTime is how long a full sync takes about, moveTime a slot migration.
	syncTime, moveTime time.Duration
	// lag of replication.
	lag time.Duration
	// commandErrors is how likely a command fails unsent, commandLost how likely it
	// is carried out while the manager sees an error.
	commandErrors, commandLost float64
	// crash is how likely the manager dies before an action.
	crash float64
	// watchLag is how much the manager's caches are behind at most.
	watchLag time.Duration
	// startTime is how long a pod needs to start at most.
	startTime time.Duration
	// tcpProbe means that a hung server is not noticed by its kubelet.
	tcpProbe bool
}

func newWorld(seed uint64, opt Options) *world {
	chance := rand.New(rand.NewPCG(seed, 0x5eed))
	w := &world{seed: seed, rand: chance, opt: opt, api: newAPI(), calm: never, completeSince: never, awaitedSince: never}
	w.stats = newStats()
	w.truth = newTruth(w)
	w.quirks = w.newQuirks()
	for i := range 4 + w.rand.IntN(4) {
		w.hosts = append(w.hosts, &host{name: fmt.Sprintf("h%d", i), ready: true, registered: true})
	}
	w.m = newManager(w)
	w.client = &client{w: w}
	return w
}

func (w *world) newQuirks() quirks {
	q := quirks{
		syncTime:  w.between(50*time.Millisecond, 3*time.Second),
		moveTime:  w.between(50*time.Millisecond, 3*time.Second),
		lag:       w.between(time.Millisecond, 150*time.Millisecond),
		watchLag:  w.between(5*time.Millisecond, 300*time.Millisecond),
		startTime: w.between(500*time.Millisecond, 6*time.Second),
		tcpProbe:  w.chance(0.5),
	}
	if w.chance(0.5) {
		q.commandErrors, q.commandLost = w.rand.Float64()*0.1, w.rand.Float64()*0.1
	}
	if w.chance(0.5) {
		q.crash = w.rand.Float64() * 0.1
	}
	return q
}

// between returns a duration in [a, b).
func (w *world) between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(w.rand.Int64N(int64(b-a)))
}

func (w *world) chance(p float64) bool { return p > 0 && w.rand.Float64() < p }

// say writes a line of the trace.
func (w *world) say(format string, args ...any) {
	if w.opt.Trace == nil {
		return
	}
	fmt.Fprintf(w.opt.Trace, "%9.3f  %s\n", w.now.Seconds(), fmt.Sprintf(format, args...))
}

// tracing reports whether say writes, for arguments that cost something.
func (w *world) tracing() bool { return w.opt.Trace != nil }

// shuffled returns the numbers 0 to n-1 in random order.
func (w *world) shuffled(n int) []int { return w.rand.Perm(n) }
