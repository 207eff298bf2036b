package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// migration is a job of CLUSTER MIGRATESLOTS, at its source and at its target.
type migration struct {
	name           string
	source, target *server
	slots          slots.Set
	state          string
	message        string
	// since is when the other end stopped answering.
	unheard time.Duration
}

func (j *migration) done() bool {
	return j.state == "success" || j.state == "failed" || j.state == "cancelled"
}

func (j *migration) fail(message string) {
	if j.done() {
		return
	}
	j.state, j.message = "failed", message
	j.source.w.say("migration of %d slots from %s to %s failed: %s", j.slots.Len(), j.source, j.target, message)
	j.source.w.stats.count("migration failed")
	if j.source.pausedUntil > 0 && !j.source.stopping {
		j.source.pausedUntil = 0
	}
}

// migrateSlots is CLUSTER MIGRATESLOTS. OK means only that the job is queued.
func (s *server) migrateSlots(moved slots.Set, targetID string) error {
	r := s.row(targetID)
	switch {
	case s.isReplica():
		return errors.New("ERR Slot migration can only be used on primary nodes")
	case r == nil:
		return fmt.Errorf("ERR Invalid node name: %s", targetID)
	case r == s.self:
		return errors.New("ERR Target node can not be this node")
	case !moved.Minus(s.self.slots).Empty():
		return errors.New("ERR Slots are not served by this node")
	}
	for _, j := range s.jobs {
		if j.source == s && !j.done() && !j.slots.Intersect(moved).Empty() {
			return errors.New("ERR I am already migrating slot")
		}
	}
	s.w.migrations++
	j := &migration{name: fmt.Sprintf("%040x", s.w.migrations), source: s, target: r.peer, slots: moved, state: "connecting", unheard: never}
	s.jobs = append(s.jobs, j)
	s.w.truth.migrationStarts(j)
	s.w.after(s.w.between(time.Millisecond, 50*time.Millisecond), func() { s.snapshot(j) })
	return nil
}

// snapshot copies what the slots hold.
func (s *server) snapshot(j *migration) {
	switch {
	case j.done() || !s.running:
		return
	case !j.target.running:
		j.fail("Unable to connect to target node: Connection refused")
		return
	case j.target.isReplica():
		j.fail("Received error during handshake to target: -ERR Slot migration can only be used on primary nodes.")
		return
	case s.w.chance(0.03):
		j.fail("Connection lost to target")
		return
	}
	for _, other := range s.jobs {
		if other != j && other.source == s && !other.done() {
			s.w.after(100*time.Millisecond, func() { s.snapshot(j) }) // one at a time
			return
		}
	}
	j.state = "snapshotting"
	j.target.jobs = append(j.target.jobs, j)
	s.w.after(s.w.between(s.w.quirks.moveTime/2, s.w.quirks.moveTime*2), func() { s.pauseFor(j) })
}

// pauseFor stops the source's writes for the last part.
func (s *server) pauseFor(j *migration) {
	if j.done() || !s.running {
		return
	}
	if !s.w.talks(s, j.target) || s.hung || s.pausedUntil > s.w.now {
		s.w.after(200*time.Millisecond, func() { s.pauseFor(j) }) // migrateCron gives it up in the end
		return
	}
	j.state = "failover-paused"
	s.pausedUntil = s.w.now + 2*manualTimeout
	s.w.after(s.w.between(5*time.Millisecond, 100*time.Millisecond), func() { s.granted(j) })
}

// granted is the moment in which the slots change hands.
func (s *server) granted(j *migration) {
	t := j.target
	switch {
	case j.done() || !s.running:
		return
	case s.hung || !s.w.talks(s, t) || t.isReplica() || s.isReplica() || !j.slots.Minus(s.self.slots).Empty():
		j.fail("Timed out before streaming completed")
		return
	}
	if t.pausedUntil > s.w.now {
		j.fail("A failover occurred during slot import")
		return
	}
	if r := t.row(s.id); r == nil || !j.slots.Minus(r.slots).Empty() {
		j.fail("Slots are no longer owned by the source")
		return
	}
	j.state = "success"
	moved := s.w.in(s.data, j.slots)
	t.data.merge(moved)
	t.tellReplicas(func(replica *server) { replica.data.merge(moved) })
	for _, r := range t.rows {
		r.slots = r.slots.Minus(j.slots)
	}
	t.self.slots = t.self.slots.Union(j.slots)
	t.self.epoch = t.nextEpoch()
	s.w.say("%d slots moved from %s to %s", j.slots.Len(), s, t)
	s.w.stats.count("slots migrated")
	t.settle()
	t.broadcast()
}

// migrateCron gives up jobs whose other end is silent for too long. Source and
// target each look for themselves.
func (s *server) migrateCron() {
	for _, j := range s.jobs {
		other := j.target
		if other == s {
			other = j.source
		}
		if j.done() || s.w.talks(s, other) {
			j.unheard = never
			continue
		}
		if j.unheard == never {
			j.unheard = s.w.now
		}
		if s.w.now-j.unheard > replTimeout {
			j.fail("Timed out after too long with no interaction")
		}
	}
}

// peerEnded fails the jobs with a process that ended.
func (s *server) peerEnded(peer *server) {
	for _, j := range s.jobs {
		if j.source == peer || j.target == peer {
			j.fail("Connection lost")
		}
	}
}

func (s *server) abortExports(message string) {
	for _, j := range s.jobs {
		if j.source == s {
			j.fail(message)
		}
	}
}

func (s *server) abortImports(message string) {
	for _, j := range s.jobs {
		if j.target == s {
			j.fail(message)
		}
	}
}

// migrations is CLUSTER GETSLOTMIGRATIONS, newest first.
func (s *server) migrations() []topology.Migration {
	out := make([]topology.Migration, 0, len(s.jobs))
	for i, j := range slices.Backward(s.jobs) {
		out = append(out, topology.Migration{
			Name: j.name, Export: j.source == s, Slots: j.slots, SourceID: j.source.id,
			TargetID: j.target.id, State: j.state, Message: j.message, Created: int64(i + 1),
		})
	}
	return out
}

// busy reports whether the server takes part in a migration.
func (s *server) busy(asSource bool) bool {
	return slices.ContainsFunc(s.jobs, func(j *migration) bool { return !j.done() && (j.source == s) == asSource })
}
