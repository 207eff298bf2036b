package slots

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t *testing.T, s string) Set {
	t.Helper()
	set, err := ParseSet(s)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestParseSetReadsWhatTheServerPrints(t *testing.T) {
	for _, tc := range []struct {
		text, canonical string
		count           int
	}{
		{"", "", 0},
		{"  ", "", 0},
		{"0", "0", 1},
		{"16383", "16383", 1},
		{"0-16383", "0-16383", 16384},
		{"0-5460 7000 8000-8001", "0-5460 7000 8000-8001", 5464},
		{"0-5460 5461", "0-5461", 5462},
		{"10-20 5-12", "5-20", 16},
		{"7 7 7", "7", 1},
		{"8000-8001 3 0-1", "0-1 3 8000-8001", 5},
	} {
		t.Run(tc.text, func(t *testing.T) {
			set := mustParse(t, tc.text)
			if set.String() != tc.canonical || set.Len() != tc.count {
				t.Errorf("got %q with %d slots, want %q with %d", set, set.Len(), tc.canonical, tc.count)
			}
			if set.Empty() != (tc.count == 0) {
				t.Errorf("Empty() = %v for %d slots", set.Empty(), tc.count)
			}
		})
	}
}

func TestParseSetRefusesWhatNoServerCanOwn(t *testing.T) {
	for _, text := range []string{"16384", "0-16384", "-1", "5-3", "a", "1-", "-", "1-2-3", "1,2", "+1", "[1->-abc]", "70000"} {
		if set, err := ParseSet(text); err == nil {
			t.Errorf("ParseSet(%q) = %q, want an error", text, set)
		}
	}
}

func TestFromRangesDropsWhatIsNoSlot(t *testing.T) {
	got := FromRanges(Range{Start: 16380, End: 20000}, Range{Start: 20000, End: 20001}, Range{Start: 9, End: 3}, Range{Start: 1, End: 1})
	if got.String() != "1 16380-16383" {
		t.Errorf("got %q", got)
	}
}

func TestASetIsNotChangedThroughWhatItWasMadeFromOrHandedOut(t *testing.T) {
	in := []Range{{Start: 5, End: 6}, {Start: 1, End: 2}}
	set := FromRanges(in...)
	in[0].End = 100
	set.Ranges()[0].Start = 99
	set.Union(mustParse(t, "3-4"))
	if set.String() != "1-2 5-6" {
		t.Errorf("set changed to %q", set)
	}
}

// TestArithmeticAgreesWithSetsOfNumbers compares every operation with a plain map
// over random sets.
func TestArithmeticAgreesWithSetsOfNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	randomSet := func() (Set, map[int]bool) {
		var ranges []Range
		members := map[int]bool{}
		for range random.IntN(6) {
			start := random.IntN(60)
			if random.IntN(4) == 0 {
				start = Count - 1 - random.IntN(60)
			}
			end := min(start+random.IntN(15), Count-1)
			ranges = append(ranges, Range{Start: uint16(start), End: uint16(end)})
			for slot := start; slot <= end; slot++ {
				members[slot] = true
			}
		}
		return FromRanges(ranges...), members
	}
	for range 100 {
		a, inA := randomSet()
		b, inB := randomSet()
		results := map[string]Set{"a": a, "union": a.Union(b), "minus": a.Minus(b), "intersect": a.Intersect(b)}
		counts := map[string]int{}
		for slot := -1; slot <= Count; slot++ {
			want := map[string]bool{"a": inA[slot], "union": inA[slot] || inB[slot], "minus": inA[slot] && !inB[slot], "intersect": inA[slot] && inB[slot]}
			for name, set := range results {
				if set.Contains(slot) != want[name] {
					t.Fatalf("a=%q b=%q: %s = %q, Contains(%d) = %v", a, b, name, set, slot, set.Contains(slot))
				}
				if want[name] {
					counts[name]++
				}
			}
		}
		for name, set := range results {
			if set.Len() != counts[name] || set.Empty() != (counts[name] == 0) {
				t.Fatalf("a=%q b=%q: %s = %q has Len %d, want %d", a, b, name, set, set.Len(), counts[name])
			}
			if again := mustParse(t, set.String()); !again.Equal(set) {
				t.Fatalf("%s = %q reads back as %q", name, set, again)
			}
		}
		if equal := cmp.Equal(inA, inB); a.Equal(b) != equal {
			t.Fatalf("a=%q b=%q: Equal = %v", a, b, !equal)
		}
	}
}

// B-02: the numbers are pinned, a new cluster must always be split the same way.
func TestSplitIsEvenContiguousAndLargerPartsFirst(t *testing.T) {
	for shards, want := range map[int][][2]int{ // size, how often
		1:    {{16384, 1}},
		2:    {{8192, 2}},
		3:    {{5462, 1}, {5461, 2}},
		5:    {{3277, 4}, {3276, 1}},
		6:    {{2731, 4}, {2730, 2}},
		7:    {{2341, 4}, {2340, 3}},
		100:  {{164, 84}, {163, 16}},
		1000: {{17, 384}, {16, 616}},
	} {
		parts := Split(shards)
		var sizes [][2]int
		union := Set{}
		next := uint16(0)
		for _, part := range parts {
			if len(part.Ranges()) != 1 || part.Ranges()[0].Start != next {
				t.Fatalf("%d shards: part %q doesn't start at %d", shards, part, next)
			}
			next = part.Ranges()[0].End + 1
			union = union.Union(part)
			if n := len(sizes); n > 0 && sizes[n-1][0] == part.Len() {
				sizes[n-1][1]++
			} else {
				sizes = append(sizes, [2]int{part.Len(), 1})
			}
		}
		if diff := cmp.Diff(want, sizes); diff != "" {
			t.Errorf("%d shards: sizes (-want +got)\n%s", shards, diff)
		}
		if !union.Equal(All()) || union.Len() != Count {
			t.Errorf("%d shards: cover %q", shards, union)
		}
	}
}

func TestSplitOverNoShardsOrMoreShardsThanSlots(t *testing.T) {
	if got := Split(0); got != nil {
		t.Errorf("Split(0) = %v", got)
	}
	if got := Split(-1); got != nil {
		t.Errorf("Split(-1) = %v", got)
	}
	parts := Split(Count + 2)
	if len(parts) != Count+2 || parts[Count-1].String() != "16383" || !parts[Count].Empty() {
		t.Errorf("split over more shards than slots: %d parts, last %q", len(parts), parts[Count])
	}
}

func FuzzParseSet(f *testing.F) {
	for _, seed := range []string{"", "0-5460 7000 8000-8001", "5-3", "16384", "1-", "\t0 \n1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseSet(text)
		if err != nil {
			return
		}
		if set.Len() > Count || set.Contains(-1) || set.Contains(Count) {
			t.Errorf("%q holds slots that don't exist: %q", text, set)
		}
		if again := mustParse(t, set.String()); !again.Equal(set) {
			t.Errorf("%q reads back as %q", set, again)
		}
		if !set.Minus(set).Empty() || !set.Intersect(set).Equal(set) || !set.Union(set).Equal(set) {
			t.Errorf("arithmetic of %q with itself is wrong", set)
		}
	})
}
