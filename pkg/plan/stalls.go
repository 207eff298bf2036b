package plan

import (
	"fmt"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// Bounds of how long a source waits after a failed migration: 5 s, 10 s, 20 s and
// so on. Each attempt costs the source a copy of its slots.
const (
	firstStall   = 5 * time.Second
	longestStall = 5 * time.Minute
)

// Stalls remembers which sources fail to move their slots away, and how often they
// did. A manager that is restarted begins to count anew, which costs one early
// attempt.
type Stalls struct {
	bySource map[string]*stall
}

type stall struct {
	job      string
	attempts int
	until    time.Time
	message  string
}

// Note looks at the newest exports of each server that answered and returns, by
// source, how long no other is to be started. A server's own list of its migrations
// says what has become of the last attempt, whoever made it.
func (s *Stalls) Note(replies []topology.Reply, now time.Time) map[string]Hold {
	if s.bySource == nil {
		s.bySource = map[string]*stall{}
	}
	for _, reply := range replies {
		if reply.Err == nil {
			s.note(reply, now)
		}
	}
	holds := map[string]Hold{}
	for source, at := range s.bySource {
		holds[source] = Hold{
			Remaining: max(at.until.Sub(now), 0),
			Reason: fmt.Sprintf("node %s says: %s (attempt %d, the next at %s)",
				source, at.message, at.attempts, at.until.UTC().Format("15:04:05 MST")),
		}
	}
	return holds
}

func (s *Stalls) note(reply topology.Reply, now time.Time) {
	failed, done := lastExports(reply.Migrations)
	at := s.bySource[reply.Node]
	switch {
	case !done: // what has become of them is not known yet
	case failed.Name == "":
		delete(s.bySource, reply.Node)
	case at != nil && at.job == failed.Name:
	default:
		if at == nil {
			at = &stall{}
			s.bySource[reply.Node] = at
		}
		at.job, at.message = failed.Name, failed.Message
		if at.message == "" {
			at.message = "the migration was " + failed.State
		}
		wait := longestStall
		if at.attempts < 6 {
			wait = min(firstStall<<at.attempts, longestStall)
		}
		at.attempts++
		at.until = now.Add(wait)
	}
}

// lastExports looks at what the newest command asked a source for, which may be many
// jobs: whether all are over, and the first that failed, if any did.
func lastExports(jobs []topology.Migration) (failed topology.Migration, done bool) {
	created, found := int64(0), false
	for _, job := range jobs {
		switch {
		case !job.Export:
			continue
		case !found:
			created, found = job.Created, true
		case job.Created != created:
			return failed, true
		}
		if !job.Done() {
			return topology.Migration{}, false
		}
		if job.Failed() && failed.Name == "" {
			failed = job
		}
	}
	return failed, true
}
