package sim

import (
	"math/bits"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// write is one key that the client wrote and a server acknowledged.
type write struct {
	slot int
	at   time.Duration
	by   *server
	// excused writes may be lost: a fault took the only copies.
	excused bool
}

// dataset is the set of writes that a server holds, by their numbers.
type dataset []uint64

func (d *dataset) add(id int) {
	for len(*d) <= id/64 {
		*d = append(*d, 0)
	}
	(*d)[id/64] |= 1 << (id % 64)
}

func (d dataset) has(id int) bool { return id/64 < len(d) && d[id/64]&(1<<(id%64)) != 0 }

func (d dataset) clone() dataset { return append(dataset(nil), d...) }

func (d dataset) len() int {
	n := 0
	for _, word := range d {
		n += bits.OnesCount64(word)
	}
	return n
}

// each calls f for every write of the set.
func (d dataset) each(f func(id int)) {
	for i, word := range d {
		for word != 0 {
			bit := bits.TrailingZeros64(word)
			word &^= 1 << bit
			f(i*64 + bit)
		}
	}
}

// in returns the writes whose keys are in the slots.
func (w *world) in(d dataset, set slots.Set) dataset {
	var out dataset
	d.each(func(id int) {
		if set.Contains(w.truth.writes[id].slot) {
			out.add(id)
		}
	})
	return out
}

// drop removes the keys of slots.
func (w *world) drop(d *dataset, set slots.Set) {
	d.each(func(id int) {
		if set.Contains(w.truth.writes[id].slot) {
			(*d)[id/64] &^= 1 << (id % 64)
		}
	})
}

// merge adds all writes of other.
func (d *dataset) merge(other dataset) { other.each(func(id int) { d.add(id) }) }
