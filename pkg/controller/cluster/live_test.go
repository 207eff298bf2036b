package cluster

import "testing"

// U-08: a setting that the running server doesn't take needs a new server, if that
// one would take it; else it is reported.
func TestWhatAServerTakesOnlyAtItsStart(t *testing.T) {
	const failed = "ERR CONFIG SET failed (possibly related to argument 'x') - "
	for _, c := range []struct {
		key, answer string
		want        bool
	}{
		{"databases", failed + "can't set immutable config", true},
		{"dbfilename", failed + "can't set protected config", true},
		{"loadmodule", "ERR Unknown option or number of arguments for CONFIG SET - 'loadmodule'", true},
		{"LoadModule", "ERR Unknown option or number of arguments for CONFIG SET - 'LoadModule'", true},
		{"maxmemory-polcy", "ERR Unknown option or number of arguments for CONFIG SET - 'maxmemory-polcy'", false},
		{"maxmemory-policy", failed + "argument(s) must be one of the following: volatile-lru", false},
		{"maxmemory", "NOPERM User _momento_operator has no permissions", false},
	} {
		if got := onlyAtStart(c.key, c.answer); got != c.want {
			t.Errorf("%s, %q: only at start %v, want %v", c.key, c.answer, got, c.want)
		}
	}
}
