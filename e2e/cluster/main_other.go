//go:build !linux

// Command cluster runs a local Kubernetes, on Linux only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "error: the local cluster is made of Linux namespaces and cgroups; run this on a Linux machine")
	os.Exit(1)
}
