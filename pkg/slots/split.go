package slots

// Split divides all slots evenly and in order over the shards: each part is one
// range, sizes differ by at most one, larger parts come first. It is what a new
// cluster is built from, so it must stay the same for the same number. Shards
// beyond Count get an empty set; there is nothing to split over 0 shards.
func Split(shards int) []Set {
	if shards <= 0 {
		return nil
	}
	parts := make([]Set, shards)
	size, larger := Count/shards, Count%shards
	next := 0
	for i := range parts {
		n := size
		if i < larger {
			n++
		}
		if n > 0 {
			parts[i] = Set{ranges: []Range{{Start: uint16(next), End: uint16(next + n - 1)}}}
		}
		next += n
	}
	return parts
}
