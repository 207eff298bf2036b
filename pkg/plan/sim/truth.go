package sim

import (
	"fmt"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
)

// truth is what only the simulator knows, and what it finds wrong.
type truth struct {
	w      *world
	writes []write
	// positions of all nodes that ever were, by name.
	positions map[string]plan.Position
	// wrong is the first check that failed, check its name.
	wrong error
	check string
	// faulty is whether something happened that may cost copies or writes.
	faulty bool
	// faultAt is when somebody or something last disturbed the cluster, never if
	// nobody did.
	faultAt time.Duration
	// asked are the last failovers, by shard; created is when nodes were, by position.
	asked   map[int32]asking
	created map[plan.Position][]time.Duration
	// failed says when a life of the manager first saw that a migration had failed.
	failed map[sighting]time.Duration
	// proven says when a life of the manager first knew a primary to be dead that
	// could be followed at once.
	proven map[sighting]time.Duration
	// answered is when each node last answered a manager.
	answered map[string]time.Duration
	// shards, and replicas of each, that there are to be by what the user and the
	// manager want.
	shards   int32
	replicas int
	// disrupted shards are those that the manager is working on, each with the pass
	// that began it.
	disrupted map[int32]int
}

// fault notes that something besides the manager disturbs the cluster.
func (t *truth) fault() { t.faultAt = t.w.now }

// calm reports whether nothing but the manager disturbed the cluster for a while.
func (t *truth) calm() bool { return t.faultAt == never || t.w.now-t.faultAt > 40*time.Second }

func newTruth(w *world) *truth {
	return &truth{
		w: w, positions: map[string]plan.Position{}, faultAt: never, disrupted: map[int32]int{},
		asked: map[int32]asking{}, created: map[plan.Position][]time.Duration{}, failed: map[sighting]time.Duration{},
		proven: map[sighting]time.Duration{}, answered: map[string]time.Duration{},
	}
}

// violation notes that a check failed. The run ends with the first.
func (t *truth) violation(check, format string, args ...any) {
	if t.wrong == nil {
		t.check = check
		t.wrong = fmt.Errorf("%s: %s (at %s)", check, fmt.Sprintf(format, args...), t.w.now.Round(time.Millisecond))
		t.w.say("VIOLATION %v", t.wrong)
	}
}

// acknowledged notes a write that the client was told is done. Without faults
// there is never a second server that would have taken it too.
func (t *truth) acknowledged(by *server, slot int) int {
	t.writes = append(t.writes, write{slot: slot, at: t.w.now, by: by, excused: by.suspect})
	t.w.stats.writes++
	if t.faulty {
		return len(t.writes) - 1
	}
	for _, other := range t.w.servers {
		if other != by && other.running && !other.isReplica() && other.ok && other.self.slots.Contains(slot) && other.pausedUntil <= t.w.now {
			t.violation("one owner", "%s and %s both take writes for slot %d", by, other, slot)
		}
	}
	return len(t.writes) - 1
}

// violence notes that a server ends, or is cut off or hangs, without a chance to
// hand over. What not all of its connected replicas hold may be lost with it.
func (t *truth) violence(s *server) {
	t.faulty = true
	s.suspect = true
	var safe []*server
	for _, r := range s.replicas() {
		if !r.suspect {
			safe = append(safe, r)
		}
	}
	s.data.each(func(id int) {
		for _, r := range safe {
			if !r.data.has(id) {
				t.excuse(id)
				return
			}
		}
		if len(safe) == 0 && !s.isReplica() {
			t.excuse(id)
		}
	})
	t.gone(s)
}

func (t *truth) excuse(id int) {
	if !t.writes[id].excused {
		t.faulty = true
		t.writes[id].excused = true
		t.w.stats.excused++
	}
}

// gone excuses what no server that goes on holds any more. It is not asked when
// the manager itself ended the process: then nothing may be lost.
func (t *truth) gone(s *server) {
	s.data.each(func(id int) {
		for _, other := range t.w.servers {
			if other != s && other.running && !other.suspect && !t.ending(other) && other.data.has(id) {
				return
			}
		}
		t.excuse(id)
	})
}

// accepted excuses what the user accepts to be lost: all that no primary serves.
func (t *truth) accepted() {
	for id, wr := range t.writes {
		served := false
		for _, s := range t.w.servers {
			served = served || t.serves(s) && !s.suspect && t.member(s) && s.self.slots.Contains(wr.slot) && s.data.has(id)
		}
		if !served {
			t.excuse(id)
		}
	}
}

// ending reports whether a server is about to go, whoever wants it to.
func (t *truth) ending(s *server) bool {
	return s.stopping || s.writtenOff || !t.member(s)
}

// lostWrites compares what was acknowledged with what the owners of the slots hold.
func (t *truth) lostWrites() {
	for id, wr := range t.writes {
		if wr.excused {
			continue
		}
		held := false
		for _, s := range t.w.servers {
			if s.running && !s.isReplica() && s.self.slots.Contains(wr.slot) && s.data.has(id) {
				held = true
				break
			}
		}
		if !held {
			t.violation("no lost write", "write %d to slot %d, acknowledged by %s at %s, is on no owner", id, wr.slot, wr.by, wr.at.Round(time.Millisecond))
			return
		}
	}
}
