package sim

import "testing"

func BenchmarkSchedule(b *testing.B) {
	for seed := range b.N {
		Run(uint64(seed), Options{})
	}
}
