// Package slots holds sets of hash slots: parsing, arithmetic and the even split
// that a new cluster starts from.
package slots

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Count is the number of hash slots of a cluster, numbered from 0.
const Count = 16384

// Range is a run of slots, both ends included.
type Range struct {
	Start, End uint16
}

// Len is the number of slots in the range.
func (r Range) Len() int { return int(r.End) - int(r.Start) + 1 }

// String writes the range as the server does: 7000 or 0-5460.
func (r Range) String() string {
	if r.Start == r.End {
		return strconv.Itoa(int(r.Start))
	}
	return strconv.Itoa(int(r.Start)) + "-" + strconv.Itoa(int(r.End))
}

// Set is a set of slots. The zero value is empty. No method changes its receiver,
// so a Set may be copied and shared.
type Set struct {
	// ranges are sorted, disjoint and never adjacent, so that equal sets have
	// equal ranges.
	ranges []Range
}

// FromRanges is the set of all slots of the ranges, which may overlap and come in
// any order. Slots of Count and above and ranges that end before they start are
// dropped: no server can own them.
func FromRanges(ranges ...Range) Set {
	valid := make([]Range, 0, len(ranges))
	for _, r := range ranges {
		if r.End >= Count {
			r.End = Count - 1
		}
		if r.Start <= r.End {
			valid = append(valid, r)
		}
	}
	return Set{ranges: merge(valid)}
}

// merge sorts valid ranges and joins those that touch. It works in place.
func merge(ranges []Range) []Range {
	if len(ranges) == 0 {
		return nil
	}
	slices.SortFunc(ranges, func(a, b Range) int { return int(a.Start) - int(b.Start) })
	merged := ranges[:1]
	for _, r := range ranges[1:] {
		last := &merged[len(merged)-1]
		if int(r.Start) > int(last.End)+1 {
			merged = append(merged, r)
			continue
		}
		last.End = max(last.End, r.End)
	}
	return merged
}

// ParseSet reads slots as the server prints them and as status shows them: single
// slots and ranges, separated by spaces, for example "0-5460 7000 8000-8001". The
// empty text is the empty set.
func ParseSet(s string) (Set, error) {
	fields := strings.Fields(s)
	ranges := make([]Range, 0, len(fields))
	for _, field := range fields {
		r, err := ParseRange(field)
		if err != nil {
			return Set{}, err
		}
		ranges = append(ranges, r)
	}
	return FromRanges(ranges...), nil
}

// ParseRange reads one slot or one range, for example "7000" or "0-5460".
func ParseRange(s string) (Range, error) {
	first, last, isRange := strings.Cut(s, "-")
	start, err := ParseSlot(first)
	if err != nil {
		return Range{}, fmt.Errorf("read slot range %q: %w", s, err)
	}
	if !isRange {
		return Range{Start: start, End: start}, nil
	}
	end, err := ParseSlot(last)
	if err != nil {
		return Range{}, fmt.Errorf("read slot range %q: %w", s, err)
	}
	if end < start {
		return Range{}, fmt.Errorf("read slot range %q: it ends before it starts", s)
	}
	return Range{Start: start, End: end}, nil
}

// ParseSlot reads one slot number.
func ParseSlot(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n >= Count {
		return 0, fmt.Errorf("%q is no slot: want a number from 0 to %d", s, Count-1)
	}
	return uint16(n), nil
}

// Ranges are the slots as sorted ranges that neither overlap nor touch. The caller
// may keep and change the result.
func (s Set) Ranges() []Range { return slices.Clone(s.ranges) }

// Len is the number of slots in the set.
func (s Set) Len() int {
	n := 0
	for _, r := range s.ranges {
		n += r.Len()
	}
	return n
}

// Empty is whether the set has no slot.
func (s Set) Empty() bool { return len(s.ranges) == 0 }

// Equal is whether both sets hold the same slots.
func (s Set) Equal(other Set) bool { return slices.Equal(s.ranges, other.ranges) }

// Contains is whether the slot is in the set.
func (s Set) Contains(slot int) bool {
	_, found := slices.BinarySearchFunc(s.ranges, slot, func(r Range, slot int) int {
		switch {
		case int(r.End) < slot:
			return -1
		case int(r.Start) > slot:
			return 1
		default:
			return 0
		}
	})
	return found
}

// Union is every slot that is in either set.
func (s Set) Union(other Set) Set {
	return Set{ranges: merge(slices.Concat(s.ranges, other.ranges))}
}

// Minus is every slot of s that is not in other.
func (s Set) Minus(other Set) Set {
	return s.Intersect(other.complement())
}

// Intersect is every slot that is in both sets.
func (s Set) Intersect(other Set) Set {
	var common []Range
	for i, j := 0, 0; i < len(s.ranges) && j < len(other.ranges); {
		a, b := s.ranges[i], other.ranges[j]
		if r := (Range{Start: max(a.Start, b.Start), End: min(a.End, b.End)}); r.Start <= r.End {
			common = append(common, r)
		}
		if a.End < b.End {
			i++
		} else {
			j++
		}
	}
	return Set{ranges: common}
}

// All is the set of all slots.
func All() Set { return Set{ranges: []Range{{Start: 0, End: Count - 1}}} }

func (s Set) complement() Set {
	var gaps []Range
	next := 0
	for _, r := range s.ranges {
		if next < int(r.Start) {
			gaps = append(gaps, Range{Start: uint16(next), End: r.Start - 1})
		}
		next = int(r.End) + 1
	}
	if next < Count {
		gaps = append(gaps, Range{Start: uint16(next), End: Count - 1})
	}
	return Set{ranges: gaps}
}

// String writes the set so that ParseSet reads it back: "0-5460 7000". The empty
// set is the empty text.
func (s Set) String() string {
	parts := make([]string, len(s.ranges))
	for i, r := range s.ranges {
		parts[i] = r.String()
	}
	return strings.Join(parts, " ")
}
