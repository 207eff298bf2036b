//go:build linux

// Command cluster runs a real three-node Kubernetes on one Linux machine,
// without Docker and without an image registry, for the end-to-end tests and
// the demo. See docs/local-kubernetes.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

func run() (exitCode int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go endWithGoRun(cancel)
	if err := newCommand().ExecuteContext(ctx); err != nil {
		// A command that ran in a node has said itself what is wrong.
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

// endWithGoRun ends the command when it was started by `go run` and that is
// gone: `go run` passes no SIGTERM on, and a killed one leaves its program
// running.
func endWithGoRun(cancel func()) {
	parent := os.Getppid()
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if err != nil || string(name) != "go\n" {
		return
	}
	for os.Getppid() == parent {
		<-time.After(200 * time.Millisecond)
	}
	cancel()
}
