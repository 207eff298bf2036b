package slots

import (
	"cmp"
	"slices"
)

// Move is a set of slots that goes from one shard to another.
type Move struct {
	From, To int
	Slots    Set
}

// Moves returns what has to move so that the first keep of the given shards own
// all that any of them owns, as evenly as possible and with as few slots moved as
// possible. Shards that stay never give slots to each other beyond what evenness
// needs, and a shard never both gives and takes: a server that is source and
// target of a migration at once can crash. Moving any part of the result and
// asking again leads to the same end.
func Moves(owned []Set, keep int) []Move {
	if keep <= 0 || keep > len(owned) {
		return nil
	}
	want := evenCounts(owned, keep)
	moves := exactMoves(owned, want, keep)
	taker := 0
	for from := range owned {
		if slices.ContainsFunc(moves, func(m Move) bool { return m.From == from }) {
			continue // it gives all that it has too many
		}
		surplus := highest(owned[from], owned[from].Len()-want[from])
		for !surplus.Empty() {
			for taker < keep && room(owned, want, moves, taker) == 0 {
				taker++
			}
			if taker == keep {
				break
			}
			part := lowest(surplus, room(owned, want, moves, taker))
			moves = append(moves, Move{From: from, To: taker, Slots: part})
			surplus = surplus.Minus(part)
		}
	}
	slices.SortStableFunc(moves, func(a, b Move) int { return cmp.Compare(a.From, b.From) })
	return moves
}

// exactMoves pairs the shards that have as many too many as another has too few, so
// that no shard gives or takes in more parts than it must.
func exactMoves(owned []Set, want []int, keep int) []Move {
	var moves []Move
	for from := range owned {
		surplus := owned[from].Len() - want[from]
		for to := range keep {
			if surplus > 0 && room(owned, want, moves, to) == surplus {
				moves = append(moves, Move{From: from, To: to, Slots: highest(owned[from], surplus)})
				break
			}
		}
	}
	return moves
}

// evenCounts returns how many slots each shard is to own: those that own most
// already keep the odd ones, so that nothing moves without need.
func evenCounts(owned []Set, keep int) []int {
	total := 0
	for _, s := range owned {
		total += s.Len()
	}
	order := make([]int, keep)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(owned[b].Len(), owned[a].Len()) })
	want := make([]int, len(owned))
	for rank, shard := range order {
		want[shard] = total / keep
		if rank < total%keep {
			want[shard]++
		}
	}
	return want
}

// room returns how many slots a shard still takes.
func room(owned []Set, want []int, moves []Move, shard int) int {
	free := want[shard] - owned[shard].Len()
	for _, m := range moves {
		if m.To == shard {
			free -= m.Slots.Len()
		}
	}
	return max(free, 0)
}

// First returns a set of the lowest slot only.
func (s Set) First() Set { return lowest(s, 1) }

// Parts cuts a set into n sets, at least one and at most one of each slot: the lowest
// slots first, larger parts before smaller ones, none larger than another by more
// than one.
func (s Set) Parts(n int) []Set {
	n = min(max(n, 1), s.Len())
	var out []Set
	for ; n > 0; n-- {
		part := lowest(s, (s.Len()+n-1)/n)
		out, s = append(out, part), s.Minus(part)
	}
	return out
}

// lowest returns the n lowest slots of a set, highest the n highest.
func lowest(s Set, n int) Set {
	var out []Range
	for _, r := range s.ranges {
		if n <= 0 {
			break
		}
		if r.Len() > n {
			r.End = r.Start + uint16(n) - 1
		}
		out = append(out, r)
		n -= r.Len()
	}
	return Set{ranges: out}
}

func highest(s Set, n int) Set {
	if n <= 0 {
		return Set{}
	}
	return s.Minus(lowest(s, s.Len()-n))
}
