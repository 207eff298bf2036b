package sim

import "testing"

func TestTheSameSeedIsTheSameLife(t *testing.T) {
	for seed := range uint64(5) {
		a, b := Run(seed, Options{}), Run(seed, Options{})
		if a.Stats.Virtual != b.Stats.Virtual || a.Stats.passes != b.Stats.passes || a.Stats.writes != b.Stats.writes {
			t.Errorf("seed %d: %+v and then %+v", seed, a.Stats, b.Stats)
		}
	}
}
