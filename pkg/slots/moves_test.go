package slots

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func total(moves []Move) int {
	n := 0
	for _, m := range moves {
		n += m.Slots.Len()
	}
	return n
}

func apply(owned []Set, moves []Move) []Set {
	out := append([]Set(nil), owned...)
	for _, m := range moves {
		out[m.From] = out[m.From].Minus(m.Slots)
		out[m.To] = out[m.To].Union(m.Slots)
	}
	return out
}

func lengths(owned []Set) []int {
	var out []int
	for _, s := range owned {
		out = append(out, s.Len())
	}
	return out
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// S-01
func TestGrowingFromThreeToFourMovesExactly4096Slots(t *testing.T) {
	owned := append(Split(3), Set{})
	moves := Moves(owned, 4)
	if total(moves) != 4096 {
		t.Errorf("moved %d slots, want 4096", total(moves))
	}
	given := make([]int, 4)
	for _, m := range moves {
		given[m.From] += m.Slots.Len()
		if m.To != 3 {
			t.Errorf("slots %s go to shard %d, want the new one", m.Slots, m.To)
		}
	}
	if want := []int{1366, 1365, 1365, 0}; !equal(given, want) {
		t.Errorf("donors give %v, want %v", given, want)
	}
	after := apply(owned, moves)
	if want := []int{4096, 4096, 4096, 4096}; !equal(lengths(after), want) {
		t.Errorf("ends at %v, want %v", lengths(after), want)
	}
	if again := Moves(after, 4); len(again) != 0 {
		t.Errorf("a balanced cluster still moves %v", again)
	}
}

// S-01
func TestShrinkingFromFourToThreeMovesNothingBetweenSurvivors(t *testing.T) {
	owned := Split(4)
	moves := Moves(owned, 3)
	if total(moves) != 4096 {
		t.Errorf("moved %d slots, want 4096", total(moves))
	}
	for _, m := range moves {
		if m.From != 3 {
			t.Errorf("survivor %d gives slots %s", m.From, m.Slots)
		}
	}
	if want := []int{5462, 5461, 5461, 0}; !equal(lengths(apply(owned, moves)), want) {
		t.Errorf("ends at %v, want %v", lengths(apply(owned, moves)), want)
	}
}

// S-01
func TestMovingInBatchesWithReplanningMovesNoSlotTwice(t *testing.T) {
	owned := append(Split(3), Set{})
	moved := 0
	for range 100 {
		moves := Moves(owned, 4)
		if len(moves) == 0 {
			break
		}
		batch := moves[0]
		batch.Slots = lowest(batch.Slots, 400)
		moved += batch.Slots.Len()
		owned = apply(owned, []Move{batch})
	}
	if moved != 4096 {
		t.Errorf("batches moved %d slots, want 4096", moved)
	}
	if want := []int{4096, 4096, 4096, 4096}; !equal(lengths(owned), want) {
		t.Errorf("ends at %v, want %v", lengths(owned), want)
	}
}

func TestRandomClustersEndEvenAndNoShardGivesAndTakes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + random.IntN(8)
		owned := make([]Set, n)
		for slot := 0; slot < Count; {
			end := min(slot+random.IntN(3000), Count-1)
			shard := random.IntN(n)
			owned[shard] = owned[shard].Union(FromRanges(Range{Start: uint16(slot), End: uint16(end)}))
			slot = end + 1
		}
		keep := 1 + random.IntN(n)
		moves := Moves(owned, keep)
		gives, takes := map[int]bool{}, map[int]bool{}
		for _, m := range moves {
			gives[m.From], takes[m.To] = true, true
			if !m.Slots.Minus(owned[m.From]).Empty() {
				t.Fatalf("shard %d gives slots it does not own: %s", m.From, m.Slots)
			}
		}
		for shard := range gives {
			if takes[shard] {
				t.Fatalf("shard %d both gives and takes in %v", shard, moves)
			}
		}
		after := apply(owned, moves)
		sum := 0
		for shard, s := range after {
			sum += s.Len()
			if shard >= keep && !s.Empty() {
				t.Fatalf("shard %d is to go and keeps %s", shard, s)
			}
			if shard < keep && (s.Len() < Count/keep || s.Len() > Count/keep+1) {
				t.Fatalf("shard %d of %d ends with %d slots", shard, keep, s.Len())
			}
		}
		if sum != Count {
			t.Fatalf("%d slots after the moves", sum)
		}
	}
}

func TestAShardThatHasAsManyTooManyAsAnotherHasTooFewGivesThemInOnePart(t *testing.T) {
	for _, n := range []int{6, 5, 4} {
		owned := Split(3)
		for len(owned) < n {
			owned = append(owned, Set{})
		}
		moves := Moves(owned, n)
		after := apply(owned, moves)
		lengths := lengths(after)
		if slices.Max(lengths)-slices.Min(lengths) > 1 {
			t.Errorf("%d shards end at %v", n, lengths)
		}
		if want := map[int]int{6: 3, 5: 4, 4: 3}[n]; len(moves) != want {
			t.Errorf("to %d shards: %v, want %d moves", n, moves, want)
		}
		if back := Moves(after, 3); total(back) != total(moves) {
			t.Errorf("from %d shards %d slots move back, want %d", n, total(back), total(moves))
		}
	}
}

func TestPartsAreOfOneSizeAndNoSlotIsLost(t *testing.T) {
	set := FromRanges(Range{0, 3}, Range{10, 12})
	for n, want := range map[int]string{
		0: "0-3 10-12",
		1: "0-3 10-12",
		2: "0-3 | 10-12",
		3: "0-2 | 3 10 | 11-12",
		7: "0 | 1 | 2 | 3 | 10 | 11 | 12",
		8: "0 | 1 | 2 | 3 | 10 | 11 | 12",
	} {
		var parts []string
		for _, part := range set.Parts(n) {
			parts = append(parts, part.String())
		}
		if got := strings.Join(parts, " | "); got != want {
			t.Errorf("in %d parts: %s, want %s", n, got, want)
		}
	}
	if got := (Set{}).Parts(3); len(got) != 0 {
		t.Errorf("nothing has the parts %v", got)
	}
}

func TestAShardGivesToTheOneThatLacksExactlyWhatItHasTooMany(t *testing.T) {
	for _, counts := range [][]int{{300, 250, 150, 100}, {300, 250, 100, 150}, {250, 300, 100, 150}} {
		var owned []Set
		start := 0
		for _, n := range counts {
			owned = append(owned, FromRanges(Range{Start: uint16(start), End: uint16(start + n - 1)}))
			start += n
		}
		moves := Moves(owned, len(owned))
		if want := []int{200, 200, 200, 200}; len(moves) != 2 || !equal(lengths(apply(owned, moves)), want) {
			t.Errorf("from %v: %v, want two moves to %v", counts, moves, want)
		}
	}
}
