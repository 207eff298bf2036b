package sim

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// seeds is how many schedules the tests live through.
func seeds() uint64 {
	switch {
	case os.Getenv("E2E_FULL") == "1":
		return 20000
	case testing.Short():
		return 200
	}
	return 2000
}

// lives runs schedules side by side and adds up what happened. It stops early once
// so many failed.
func lives(first, count uint64, enough int, opt Options) (Stats, []error) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // much garbage, little that lives
	var mu sync.Mutex
	var stats Stats
	var failed []error
	next := first
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				mu.Lock()
				seed := next
				next++
				done := seed >= first+count || len(failed) >= enough
				mu.Unlock()
				if done {
					return
				}
				r := Run(seed, opt)
				mu.Lock()
				stats.Add(r.Stats)
				if r.Err != nil {
					failed = append(failed, r.Err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return stats, failed
}

func TestSchedules(t *testing.T) {
	stats, failed := lives(1, seeds(), 5, Options{})
	for _, err := range failed {
		t.Errorf("%v\nreplay it with: go run ./pkg/plan/sim/soak -seed %s -trace", err, seedOf(err))
	}
	t.Log(stats.Summary())
	for _, line := range stats.Mix() {
		t.Log(line)
	}
	if len(failed) > 0 {
		return
	}
	for _, what := range exercised() {
		if stats.Counts[what] == 0 {
			t.Errorf("%q never happened", what)
		}
	}
	for what, enough := range map[string]int{
		"operations and faults": stats.Total("op ") / stats.Runs,
		"actions":               stats.Total("action ") / stats.Runs / 10,
		"writes":                stats.writes / stats.Runs / 50,
		"passes":                stats.passes / stats.Runs / 50,
	} {
		if enough < 1 {
			t.Errorf("the schedules are trivial: too few %s", what)
		}
	}
	if excused := float64(stats.excused) / float64(stats.writes); excused > 0.2 {
		t.Errorf("%.0f%% of all writes may be lost: too many to notice a loss", 100*excused)
	}
}

// seedOf reads the seed out of the error of a run.
func seedOf(err error) string {
	var seed string
	_, _ = fmt.Sscanf(err.Error(), "seed %s", &seed)
	return strings.TrimSuffix(seed, ":")
}

// exercised lists what has to happen in the schedules together.
func exercised() []string {
	names := []string{
		"action CreateNode", "action SetConfigEpoch", "action AssignSlots", "action Introduce", "action Replicate",
		"action Activate", "action Forget", "action MoveSlots", "action Failover", "action FailoverFORCE",
		"action FailoverTAKEOVER", "action ReplaceLost", "action Leave", "action DeleteNode",
		"command failed", "reply lost", "manager crash", "promotion", "election lost", "manual failover timed out",
		"slots migrated", "migration failed", "full sync broken", "pod unschedulable", "bad image", "schedule gentle",
		"loss accepted by the user",
	}
	for _, op := range operations {
		names = append(names, "op "+op.name)
	}
	return names
}

func TestTheSameSeedIsTheSameLife(t *testing.T) {
	for seed := range uint64(20) {
		var a, b strings.Builder
		Run(seed, Options{Trace: &a})
		Run(seed, Options{Trace: &b})
		if a.String() != b.String() {
			t.Fatalf("seed %d is not the same twice", seed)
		}
	}
}
