// Soak runs simulated schedules for as long as told, or replays one.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan/sim"
)

func main() {
	duration := flag.Duration("for", time.Minute, "how long to run schedules")
	seed := flag.Uint64("seed", 0, "run this seed only")
	first := flag.Uint64("from", uint64(time.Now().UnixNano())>>20, "first seed")
	count := flag.Uint64("n", 0, "stop after this many schedules")
	trace := flag.Bool("trace", false, "print what happens")
	keep := flag.Bool("keep-going", false, "go on after a failure")
	flag.Parse()
	debug.SetGCPercent(800) // much garbage, little that lives
	if *seed != 0 {
		replay(*seed, *trace)
		return
	}
	var stats sim.Stats
	failed := 0
	start := time.Now()
	for s := *first; time.Since(start) < *duration && (*count == 0 || s < *first+*count); s++ {
		r := sim.Run(s, sim.Options{})
		stats.Add(r.Stats)
		if r.Err != nil {
			failed++
			fmt.Println(r.Err)
			if !*keep {
				break
			}
		}
	}
	report(stats, time.Since(start))
	if failed > 0 {
		fmt.Printf("%d of %d schedules failed; replay one with -seed N -trace\n", failed, stats.Runs)
		os.Exit(1)
	}
}

// replay runs one seed.
func replay(seed uint64, trace bool) {
	opt := sim.Options{}
	if trace {
		opt.Trace = os.Stdout
	}
	if r := sim.Run(seed, opt); r.Err != nil {
		fmt.Println(r.Err)
		os.Exit(1)
	}
	fmt.Println("no check failed")
}

func report(stats sim.Stats, took time.Duration) {
	fmt.Printf("%s; %.0f schedules a second\n", stats.Summary(), float64(stats.Runs)/took.Seconds())
	for _, line := range stats.Mix() {
		fmt.Println(line)
	}
}
