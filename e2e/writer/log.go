package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/writer/report"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

func parseRanges(text string) ([]slots.Set, error) {
	var out []slots.Set
	for part := range strings.SplitSeq(text, ",") {
		set, err := slots.ParseSet(part)
		if err != nil {
			return nil, fmt.Errorf("--ranges: %w", err)
		}
		out = append(out, set)
	}
	return out, nil
}

// log is what happened, in the order in which it did.
type log struct {
	mu     sync.Mutex
	ranges []slots.Set
	began  time.Time
	before []string
	acks   []ack
	errors []failure
	marks  []mark
}

type ack struct {
	key  string
	at   time.Time
	took time.Duration
	part int // of the ranges
}

type failure struct {
	at   time.Time
	text string
}

type mark struct {
	name string
	at   time.Time
}

func newLog(ranges []slots.Set) *log { return &log{ranges: ranges} }

func (l *log) preloaded(keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = append(l.before, keys...)
}

func (l *log) begin() {
	l.began = time.Now()
	l.mark("start")
}

func (l *log) mark(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks = append(l.marks, mark{name, time.Now()})
}

func (l *log) wrote(key string, slot int, sent, done time.Time, err error) {
	part := slices.IndexFunc(l.ranges, func(s slots.Set) bool { return s.Contains(slot) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.errors = append(l.errors, failure{done, err.Error()})
		return
	}
	l.acks = append(l.acks, ack{key, done, done.Sub(sent), part})
}

func (w *writer) report(ctx context.Context) (*report.Report, error) {
	l := w.log
	slices.SortStableFunc(l.acks, func(a, b ack) int { return a.at.Compare(b.at) })
	keys := slices.Clone(l.before)
	for _, a := range l.acks {
		keys = append(keys, a.key)
	}
	lost, err := w.readBack(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := &report.Report{Acknowledged: len(keys), Lost: len(lost), LostKeys: lost[:min(len(lost), 10)]}
	end := time.Now()
	if len(l.acks) > 0 {
		end = l.acks[len(l.acks)-1].at
	}
	for i, m := range l.marks {
		until := end
		if i+1 < len(l.marks) {
			until = l.marks[i+1].at
		}
		out.Windows = append(out.Windows, l.window(m.name, m.at, until))
	}
	return out, nil
}

// window sums up the time between two moments. A gap belongs to the window in which
// it began, so that it counts as a whole, and once.
func (l *log) window(name string, from, until time.Time) report.Window {
	w := report.Window{Name: name, Ms: ms(until.Sub(from)), GapMs: make([]float64, len(l.ranges)), GapAtMs: make([]float64, len(l.ranges))}
	last := make([]time.Time, len(l.ranges))
	for i := range last {
		last[i] = from
	}
	var took []time.Duration
	for _, a := range l.acks {
		if a.part < 0 || a.at.Before(from) {
			continue
		}
		if last[a.part].Before(until) {
			noteGap(&w, a.part, from, last[a.part], a.at)
			last[a.part] = a.at
		}
		if a.at.Before(until) {
			took = append(took, a.took)
		}
	}
	for i, at := range last {
		if at.Before(until) {
			noteGap(&w, i, from, at, until)
		}
	}
	for _, f := range l.errors {
		if f.at.Before(from) || !f.at.Before(until) {
			continue
		}
		w.Failed++
		if len(w.Errors) < 5 && !slices.Contains(w.Errors, f.text) {
			w.Errors = append(w.Errors, f.text)
		}
	}
	w.Writes = len(took)
	if len(took) > 0 {
		slices.SortFunc(took, cmp.Compare[time.Duration])
		w.MedianMs, w.WorstMs = ms(took[len(took)/2]), ms(took[len(took)-1])
	}
	return w
}

// noteGap keeps the longest gap of a range.
func noteGap(w *report.Window, part int, from, since, until time.Time) {
	if gap := ms(until.Sub(since)); gap > w.GapMs[part] {
		w.GapMs[part], w.GapAtMs[part] = gap, ms(since.Sub(from))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
