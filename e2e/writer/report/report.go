// Package report is what the writer has to say in the end.
package report

import "slices"

// Report sums up a run. Times are in milliseconds.
type Report struct {
	Acknowledged int      `json:"acknowledged"` // with what was preloaded
	Lost         int      `json:"lost"`         // acknowledged, and gone or changed
	LostKeys     []string `json:"lostKeys,omitempty"`
	Windows      []Window `json:"windows"`
}

// Window is what happened from one mark to the next.
type Window struct {
	Name     string    `json:"name"`
	Ms       float64   `json:"ms"`
	Writes   int       `json:"writes"`
	Failed   int       `json:"failed"`
	Errors   []string  `json:"errors,omitempty"` // the first few that differ
	GapMs    []float64 `json:"gapMs"`            // by range: the longest time without a successful write
	GapAtMs  []float64 `json:"gapAtMs"`          // by range: when that began, from the window's begin
	WorstMs  float64   `json:"worstMs"`          // the slowest write that succeeded
	MedianMs float64   `json:"medianMs"`
}

// Window returns the window of a name.
func (r *Report) Window(name string) (Window, bool) {
	i := slices.IndexFunc(r.Windows, func(w Window) bool { return w.Name == name })
	if i < 0 {
		return Window{}, false
	}
	return r.Windows[i], true
}

// Gap is the longest time in ms without a successful write to one of the ranges.
func (w Window) Gap() float64 { return slices.Max(w.GapMs) }

// Failed is how many writes failed in all.
func (r *Report) Failed() (n int, errors []string) {
	for _, w := range r.Windows {
		n, errors = n+w.Failed, append(errors, w.Errors...)
	}
	return n, errors
}
