package sim

import (
	"errors"
	"fmt"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// setConfigEpoch is CLUSTER SET-CONFIG-EPOCH.
func (s *server) setConfigEpoch(epoch uint64) error {
	switch {
	case len(s.rows) > 1:
		return errors.New("ERR The user can assign a config epoch only when the node does not know any other node")
	case s.self.epoch != 0:
		return errors.New("ERR Node config epoch is already non-zero")
	}
	s.self.epoch = epoch
	s.currentEpoch = max(s.currentEpoch, epoch)
	s.changed()
	return nil
}

// addSlots is CLUSTER ADDSLOTSRANGE: all of them or none.
func (s *server) addSlots(set slots.Set) error {
	for _, r := range s.rows {
		if busy := r.slots.Intersect(set); !busy.Empty() {
			return fmt.Errorf("ERR Slot %d is already busy", busy.Ranges()[0].Start)
		}
	}
	if s.isReplica() {
		return errors.New("ERR a replica can't own slots")
	}
	s.self.slots = s.self.slots.Union(set)
	s.changed()
	s.settle()
	return nil
}

// delSlots is CLUSTER DELSLOTSRANGE: the server no longer takes others to own them.
func (s *server) delSlots(set slots.Set) {
	for _, r := range s.rows {
		if r != s.self {
			r.slots, r.unclaimed = r.slots.Minus(set), r.unclaimed.Minus(set)
		}
	}
	s.changed()
}

// bumpEpoch is CLUSTER BUMPEPOCH.
func (s *server) bumpEpoch() {
	top := s.currentEpoch
	for _, r := range s.rows {
		top = max(top, r.epoch)
	}
	if s.self.epoch == 0 || s.self.epoch != top {
		s.self.epoch = s.nextEpoch()
		s.changed()
		s.broadcast()
	}
}

// replicate is CLUSTER REPLICATE.
func (s *server) replicate(id string) error {
	r := s.row(id)
	switch {
	case r == nil:
		return fmt.Errorf("ERR Unknown node %s", id)
	case r == s.self:
		return errors.New("ERR Can't replicate myself")
	case !r.primary:
		return errors.New("ERR I can only replicate a master, not a replica")
	case s.self.primary && (!s.self.slots.Empty() || s.data.len() > 0):
		return errors.New("ERR To set a master the node must be empty and without assigned slots")
	case s.isReplica() && s.self.primaryID == id:
		return nil
	}
	s.setPrimary(r)
	return nil
}

// forget is CLUSTER FORGET. The word spreads: whoever hears of it forgets too, but
// for the member itself and its replicas.
func (s *server) forget(id string) error {
	r := s.row(id)
	switch {
	case r == nil:
		return fmt.Errorf("ERR Unknown node %s", id)
	case r == s.self:
		return errors.New("ERR I tried hard but I can't forget myself")
	case s.isReplica() && s.self.primaryID == id:
		return errors.New("ERR Can't forget my master!") //nolint:revive,staticcheck // the server's own words
	}
	s.ban(id)
	s.unlearn(id)
	s.settle()
	for _, other := range s.rows {
		if other == s.self {
			continue
		}
		peer := other.peer
		s.w.after(s.w.between(cronEvery/50, 3*cronEvery), func() {
			if s.running && s.w.talks(s, peer) && peer.row(s.id) != nil {
				peer.forgetToo(id)
			}
		})
	}
	return nil
}

// forgetToo is the effect of another member's FORGET.
func (s *server) forgetToo(id string) {
	if s.row(id) == nil || s.id == id || s.isReplica() && s.self.primaryID == id {
		return
	}
	s.ban(id)
	s.unlearn(id)
	s.settle()
}

// ban keeps a member from coming back by gossip for a while.
func (s *server) ban(id string) {
	s.blacklist[id] = s.w.now + blacklistTTL
	s.w.after(blacklistTTL, s.changed)
}
