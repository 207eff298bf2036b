package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	tests := []struct {
		name string
		err  error
		code int
		text string
	}{
		{"no error says nothing", nil, OK, ""},
		{"an ordinary error exits 1", errors.New("no such cluster"), Failed, "error: no such cluster\n"},
		{"wrong usage exits 2", Usagef("unknown flag %q", "--x"), Usage, "error: unknown flag \"--x\"\n"},
		{"a wrapped usage error still exits 2", fmt.Errorf("create: %w", Usagef("bad name")), Usage, "error: create: bad name\n"},
		{"a timeout exits 124", Timeoutf("waited 5s"), TimedOut, "error: waited 5s\n"},
		{"an explained interrupt exits 130", Interruptedf("goes on"), Interrupted, "error: goes on\n"},
		{"an interrupted request is not reported as a failure of the server", fmt.Errorf("get: %w", context.Canceled), Interrupted, "error: interrupted\n"},
		{"several lines are folded into one", fmt.Errorf("first\n\n  %w\n and more", errors.New("second")), Failed, "error: first second and more\n"},
		{"each joined problem has a line", errors.Join(errors.New("a"), errors.Join(errors.New("b"), errors.New("c"))), Failed, "error: a\nerror: b\nerror: c\n"},
		{"joined problems keep the code around them", UsageError(errors.Join(errors.New("a"), errors.New("b"))), Usage, "error: a\nerror: b\n"},
		{"a sentence around joined problems stays whole", fmt.Errorf("can't read: %w, %w", errors.New("a"), errors.New("b")), Failed, "error: can't read: a, b\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if code := Report(&out, tt.err); code != tt.code {
				t.Errorf("code = %d, want %d", code, tt.code)
			}
			if out.String() != tt.text {
				t.Errorf("text = %q, want %q", out.String(), tt.text)
			}
		})
	}
}
