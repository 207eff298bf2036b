package progress

import (
	"os"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// screen is a terminal of 30 columns.
type screen struct{ strings.Builder }

func (*screen) TerminalSize() (width, height int, ok bool) { return 30, 10, true }

func env(pairs map[string]string) func(string) string {
	return func(k string) string { return pairs[k] }
}

func wait(r *Reporter, clk *clocktesting.FakeClock) {
	r.Update("pods 0/6")
	clk.Step(1500 * time.Millisecond)
	r.Update("pods 0/6")
	r.Update("pods 0/6")
	r.Update("pods 1/6; demo-3fa2c is ImagePullBackOff")
	clk.Step(time.Minute)
	r.Update("pods 6/6")
	r.Done()
}

func TestReporter(t *testing.T) {
	live := "\r  0s  pods 0/6" +
		"\r  1s  pods 0/6" +
		"\r  1s  pods 1/6; demo-3fa2c i…" +
		"\r1m1s  pods 6/6               " +
		"\r              \r"
	plain := "  0s  pods 0/6\n" +
		"  1s  pods 1/6; demo-3fa2c is ImagePullBackOff\n" +
		"1m1s  pods 6/6\n"
	tests := []struct {
		name string
		env  map[string]string
		tty  bool
		want string
	}{
		{"a terminal gets one line, drawn over", nil, true, live},
		{"NO_COLOR changes nothing: there are no escape codes in it", map[string]string{"NO_COLOR": "1"}, true, live},
		{"a dumb terminal gets plain lines", map[string]string{"TERM": "dumb"}, true, plain},
		{"a pipe gets a line for each change", nil, false, plain},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(time.Unix(0, 0))
			s := &screen{}
			terminal := output.TerminalOf(&s.Builder, env(tt.env))
			if tt.tty {
				terminal = output.TerminalOf(s, env(tt.env))
			}
			wait(New(s, terminal, clk), clk)
			if s.String() != tt.want {
				t.Errorf("got\n%q, want\n%q", s.String(), tt.want)
			}
			if strings.Contains(s.String(), "\x1b") {
				t.Error("there is an escape code in it")
			}
		})
	}
}

func TestAWriterThatFailsDoesNotStopTheWait(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	_ = w.Close()
	New(w, output.TerminalOf(w, env(nil)), clocktesting.NewFakeClock(time.Unix(0, 0))).Update("pods 0/6")
}
