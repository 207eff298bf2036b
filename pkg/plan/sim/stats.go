package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Stats counts what happened in a run, or in many.
type Stats struct {
	// Counts by name: operations and faults ("op …"), actions of the manager
	// ("action …") and what else is worth knowing.
	Counts map[string]int
	// Virtual time that passed.
	Virtual time.Duration
	// writes that were acknowledged, tries that were not, and writes that a fault
	// may have taken.
	writes, failedWrites, excused, passes, spared int
	// Runs that were added up.
	Runs int
}

func newStats() Stats { return Stats{Counts: map[string]int{}, Runs: 1} }

func (s *Stats) count(what string) { s.Counts[what]++ }

// Add adds up the stats of another run.
func (s *Stats) Add(other Stats) {
	if s.Counts == nil {
		s.Counts = map[string]int{}
	}
	for what, n := range other.Counts {
		s.Counts[what] += n
	}
	s.Virtual += other.Virtual
	s.writes += other.writes
	s.failedWrites += other.failedWrites
	s.excused += other.excused
	s.passes += other.passes
	s.spared += other.spared
	s.Runs += other.Runs
}

// Summary is one line about the amounts.
func (s *Stats) Summary() string {
	return fmt.Sprintf("%d schedules, %s of virtual time, %d passes of the manager (%d found what the last one found), %d writes acknowledged, %d refused, %d excused by faults",
		s.Runs, s.Virtual.Round(time.Second), s.passes, s.spared, s.writes, s.failedWrites, s.excused)
}

// Total adds up the counts whose names begin so.
func (s *Stats) Total(prefix string) int {
	n := 0
	for what, count := range s.Counts {
		if strings.HasPrefix(what, prefix) {
			n += count
		}
	}
	return n
}

// Mix lists what happened how often, one line each, by name.
func (s *Stats) Mix() []string {
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(s.Counts)) {
		lines = append(lines, fmt.Sprintf("%8d  %s", s.Counts[what], what))
	}
	return lines
}
