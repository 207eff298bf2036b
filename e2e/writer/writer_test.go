package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

func at(ms int) time.Time { return time.UnixMilli(1_000_000).Add(time.Duration(ms) * time.Millisecond) }

// A gap counts for its range, from one success to the next, in the window in which
// it began, and no failure ends it.
func TestAGapLastsFromSuccessToSuccess(t *testing.T) {
	split := slots.Split(2)
	l := newLog(split)
	l.began = at(0)
	for _, w := range []struct {
		ms, slot int
		err      error
	}{
		{10, 0, nil},
		{10, 16383, nil},
		{20, 0, nil},
		{90, 16383, errors.New("refused")},
		{95, 0, nil},
		{130, 0, nil},
		{150, 16383, nil},
		{190, 0, nil},
		{200, 16383, nil},
	} {
		l.wrote(fmt.Sprintf("k%d", w.ms), w.slot, at(w.ms-5), at(w.ms), w.err)
	}
	first, second := l.window("first", at(0), at(100)), l.window("second", at(100), at(200))
	if got := fmt.Sprint(first.GapMs, first.GapAtMs, first.Writes, first.Failed, first.Errors); got != "[75 140] [20 10] 4 1 [refused]" {
		t.Errorf("the first window has %s", got)
	}
	if got := fmt.Sprint(second.GapMs, second.Writes, second.Failed); got != "[60 50] 3 0" {
		t.Errorf("the second window has %s", got)
	}
	if silent := l.window("silent", at(300), at(900)); silent.Gap() != 600 {
		t.Errorf("a window without any write has a gap of %v ms", silent.Gap())
	}
}

func TestWrongRangesAreRefused(t *testing.T) {
	for _, text := range []string{"", "0-x", "5-4", "0-16384"} {
		if got, err := parseRanges(text); err == nil && !got[0].Empty() {
			t.Errorf("%q gives %v", text, got)
		}
	}
}
