package cluster

import (
	"context"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// listener remembers what it was told.
type listener struct {
	valkey.Node
	settings map[string]string
}

func (s *listener) ConfigSet(_ context.Context, pairs ...[2]string) error {
	for _, p := range pairs {
		s.settings[p[0]] = p[1]
	}
	return nil
}

func (s *listener) ConfigGet(context.Context, ...string) (map[string]string, error) {
	return s.settings, nil
}

// U-08: a server that runs comes to have what a new one reads from its file.
func TestARunningServerIsToldWhatItsFileMeans(t *testing.T) {
	s := &listener{settings: map[string]string{}}
	for value, want := range map[v1alpha1.SettingValue]string{
		"'allkeys-lru'": "allkeys-lru", ` "allkeys-lru"`: "allkeys-lru", `"TLSv1.2 TLSv1.3"`: "TLSv1.2 TLSv1.3", `K"E"`: "KE", "": "", "normal  0 0 0": "normal 0 0 0",
	} {
		told, err := tell(t.Context(), s, map[string]v1alpha1.SettingValue{"x": value})
		if err != nil || s.settings["x"] != want || told.took["x"] != value {
			t.Errorf("%s: told %q and noted %q (%v), want %q", value, s.settings["x"], told.took["x"], err, want)
		}
	}
}

// U-08: a setting that the running listener doesn't take needs a new listener, if that
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
