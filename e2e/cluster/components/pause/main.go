// Command pause is the first process of every pod's sandbox: it holds the
// pod's namespaces open and does nothing else until it is told to end.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
