package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// Settings and constants of the server that matter here.
const (
	nodeTimeout   = 5 * time.Second
	manualTimeout = 2 * time.Second // cluster-manual-failover-timeout
	writableDelay = 2 * time.Second
	replTimeout   = 60 * time.Second
	blacklistTTL  = 60 * time.Second
	cronEvery     = time.Second
)

// row is what one server knows of a member, itself among them.
type row struct {
	id   string
	peer *server
	// primary is the role, primaryID whom a replica follows.
	primary   bool
	primaryID string
	epoch     uint64
	slots     slots.Set
	// unclaimed are slots that the member itself no longer claims.
	unclaimed   slots.Set
	pfail, fail bool
	failedAt    time.Duration
	// heard is when the member last answered; link whether there is a connection.
	heard time.Duration
	link  bool
	// reports of other primaries that suspect the member.
	reports map[string]time.Duration
	votedAt time.Duration
	// seen is the member's version that was taken in last, plus one; seenOwn is the
	// viewer's own at that time.
	seen, seenOwn uint64
}

// server is one Valkey process. It never starts again once it has ended.
type server struct {
	w        *world
	name, ip string
	id       string
	host     *host
	running  bool
	hung     bool
	started  time.Duration

	rows         []*row // sorted by ID
	self         *row
	currentEpoch uint64
	lastVote     uint64
	blacklist    map[string]time.Duration
	// version counts changes of the table; table is what it looked like at tableOf.
	version, tableOf uint64
	table            []topology.Member

	ok       bool
	minority time.Duration // when it last saw a minority

	data   dataset
	repl   replication
	offset int64
	// history names the stream of writes that the data came from; before is the
	// one it branched off, at branch.
	history, before uint64
	branch          int64
	// whole is the truth: the data is a full copy of what its shard has. A new server
	// is one of nothing.
	whole bool

	pausedUntil time.Duration
	stopping    bool
	manual      *manualFailover
	electing    bool
	jobs        []*migration
	// suspect is true while the server is cut off or hung: what it acknowledges
	// may be lost.
	suspect bool
	// retired is true once the manager itself has its pod deleted.
	retired bool
	// promotedAt is when it became a primary by a failover.
	promotedAt time.Duration
	// writtenOff servers were declared gone by somebody, although they run.
	writtenOff bool
	// changedReach is when it last became reachable or stopped being so.
	changedReach time.Duration
}

// newServer starts a process in a pod.
func (w *world) newServer(name, ip string, h *host) *server {
	s := &server{w: w, name: name, ip: ip, host: h, running: true, whole: true, started: w.now, blacklist: map[string]time.Duration{}, minority: never}
	s.id = fmt.Sprintf("%016x%024d", w.rand.Uint64(), len(w.servers))
	s.self = &row{id: s.id, peer: s, primary: true, link: true, votedAt: never}
	s.rows = []*row{s.self}
	s.repl.downSince = never
	s.history = w.rand.Uint64()
	w.servers = append(w.servers, s)
	s.beat(w.between(0, cronEvery))
	return s
}

func short(id string) string {
	if len(id) > 6 {
		return id[:6]
	}
	return id
}

// String names a server in the trace.
func (s *server) String() string { return s.name + "/" + short(s.id) }

// beat plans the next round of the server's cron.
func (s *server) beat(d time.Duration) {
	s.w.after(d, func() {
		if !s.running {
			return
		}
		if !s.hung {
			s.cron()
		}
		s.beat(cronEvery)
	})
}

// cron is what a server does by itself every second.
func (s *server) cron() {
	s.pingOthers()
	s.suspectSilent()
	s.follow()
	s.consider()
	s.settle()
	s.migrateCron()
}

// row returns what the server knows of a member.
func (s *server) row(id string) *row {
	i, found := slices.BinarySearchFunc(s.rows, id, func(r *row, id string) int { return strings.Compare(r.id, id) })
	if !found {
		return nil
	}
	return s.rows[i]
}

// learn adds a member to the table.
func (s *server) learn(peer *server) *row {
	if r := s.row(peer.id); r != nil {
		return r
	}
	r := &row{id: peer.id, peer: peer, primary: true, heard: s.w.now, votedAt: never}
	i, _ := slices.BinarySearchFunc(s.rows, peer.id, func(r *row, id string) int { return strings.Compare(r.id, id) })
	s.rows = slices.Insert(s.rows, i, r)
	s.changed()
	return r
}

// unlearn removes a member from the table, with its slots.
func (s *server) unlearn(id string) {
	s.rows = slices.DeleteFunc(s.rows, func(r *row) bool { return r.id == id })
	for _, r := range s.rows {
		delete(r.reports, id)
		if r.primaryID == id && r != s.self {
			r.primaryID = ""
		}
	}
	s.changed()
}

func (s *server) changed() { s.version++ }

// connect notes whether there is a connection to a member.
func (s *server) connect(r *row, up bool) {
	if r.link != up {
		r.link = up
		s.changed()
	}
}

func (s *server) isReplica() bool { return !s.self.primary }

// votes reports whether a row is a primary with slots, which are those that count
// in an election.
func (r *row) votes() bool { return r.primary && !r.slots.Empty() }

// size is the number of voting primaries that the server knows of.
func (s *server) size() int {
	n := 0
	for _, r := range s.rows {
		if r.votes() {
			n++
		}
	}
	return n
}

func (s *server) quorum() int { return s.size()/2 + 1 }

// owner returns the row that owns a slot in this server's table.
func (s *server) owner(slot int) *row {
	for _, r := range s.rows {
		if r.slots.Contains(slot) {
			return r
		}
	}
	return nil
}

// settle decides whether the server calls the cluster ok.
func (s *server) settle() {
	w := s.w
	alive, covered := 0, slots.Set{}
	for _, r := range s.rows {
		if !r.votes() {
			continue
		}
		if !r.fail {
			covered = covered.Union(r.slots)
		}
		if !r.fail && !r.pfail {
			alive++
		}
	}
	ok := covered.Len() == slots.Count
	if alive < s.quorum() {
		ok, s.minority = false, w.now
	}
	switch {
	case ok == s.ok:
		return
	case ok && s.self.primary && w.now-s.started < writableDelay:
		s.again(writableDelay - (w.now - s.started))
		return
	case ok && s.self.primary && s.minority != never && w.now-s.minority < nodeTimeout:
		s.again(nodeTimeout - (w.now - s.minority))
		return
	}
	s.ok = ok
	if w.tracing() {
		w.say("server %s calls the cluster ok=%v", s, ok)
	}
}

// again settles the cluster's state anew later.
func (s *server) again(d time.Duration) {
	s.w.after(d, func() {
		if s.running && !s.hung {
			s.settle()
		}
	})
}

// kill ends a process without a word.
func (s *server) kill(why string) {
	if !s.running {
		return
	}
	s.w.truth.violence(s)
	s.w.say("server %s is killed: %s", s, why)
	s.end(137, why)
}

// end is the end of a process: its peers on living hosts see the connections break.
func (s *server) end(code int, why string) {
	s.running = false
	s.jobs = nil
	if !s.host.off {
		s.w.after(time.Millisecond, s.hangUp)
	}
	for _, p := range s.w.api.sortedPods() {
		if p.process == s {
			s.w.exited(p, fmt.Sprintf("container ended with exit code %d: %s", code, why))
			return
		}
	}
}

// hangUp breaks the connections of others to a process that ended.
func (s *server) hangUp() {
	for _, other := range s.w.servers {
		if !other.running || !s.w.connected(s, other) {
			continue
		}
		if r := other.row(s.id); r != nil {
			other.connect(r, false)
		}
		if other.repl.from == s {
			other.dropLink()
		}
		other.peerEnded(s)
	}
}

// reply is what the server answers to the manager's questions.
func (s *server) reply() topology.Reply {
	w := s.w
	r := topology.Reply{Node: s.name, PodIP: s.ip, ID: s.id, Keys: int64(s.data.len()), Migrations: s.migrations()}
	r.Members = s.members()
	assigned := 0
	for _, row := range s.rows {
		assigned += row.slots.Len()
	}
	state := "fail"
	if s.ok {
		state = topology.StateOK
	}
	r.Info = topology.ClusterInfo{
		State: state, SlotsAssigned: assigned, KnownNodes: len(s.rows), Size: s.size(),
		CurrentEpoch: s.currentEpoch, MyEpoch: s.self.epoch,
	}
	r.Replication = topology.Replication{Role: topology.RolePrimary, Offset: s.offset, LinkDownSeconds: -1}
	if s.isReplica() {
		r.Replication.Role = topology.RoleReplica
		r.Replication.LinkUp = s.repl.up
		r.Replication.SyncInProgress = s.repl.syncing
		r.Replication.Offset = max(s.offset, 1)
		if !s.repl.up {
			r.Replication.HasLinkDownSeconds = true
			if s.repl.downSince != never {
				r.Replication.LinkDownSeconds = int64((w.now - s.repl.downSince) / time.Second)
			}
		}
	}
	return r
}

// members is the server's table. Who reads it changes nothing in it, so that it is
// made anew only when something has changed.
func (s *server) members() []topology.Member {
	if s.table != nil && s.tableOf == s.version {
		return s.table
	}
	s.table, s.tableOf = make([]topology.Member, 0, len(s.rows)), s.version
	for _, row := range s.rows {
		s.table = append(s.table, s.member(row))
	}
	return s.table
}

func (s *server) member(r *row) topology.Member {
	m := topology.Member{
		ID: r.id, IP: r.peer.ip, Port: 6379, BusPort: 16379, Role: topology.RolePrimary,
		ConfigEpoch: r.epoch, LinkUp: r.link, Slots: r.slots, Myself: r == s.self, PFail: r.pfail && !r.fail, Failed: r.fail,
	}
	if !r.primary {
		m.Role, m.PrimaryID = topology.RoleReplica, r.primaryID
		if p := s.row(r.primaryID); p != nil {
			m.ConfigEpoch = p.epoch
		}
	}
	return m
}

// position returns the place of a server's node, also of one that is gone.
func (w *world) position(s *server) plan.Position { return w.truth.positions[s.name] }
