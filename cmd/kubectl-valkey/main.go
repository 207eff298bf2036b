// Command kubectl-valkey is the kubectl plugin. On the PATH it is called as
// "kubectl valkey".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/root"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C ends the program at once, should the first not do.
	context.AfterFunc(ctx, stop)
	os.Exit(root.Execute(ctx, root.Surroundings{
		Streams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Clock:   clock.RealClock{},
		Getenv:  os.Getenv,
	}, os.Args[1:]))
}
