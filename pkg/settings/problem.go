// Package settings turns a chain of ValkeyConfigs into the settings of one
// cluster, and those into valkey.conf.
package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that keeps a cluster from being made as wished.
type Problem struct {
	// Reason is one of v1alpha1.Reason…
	Reason string
	// Message names the object and field, and what to do or what exists instead.
	Message string
}

// mostNames is how many names a message lists.
const mostNames = 20

// Existing lists what there is in place of something missing, for the end of a
// message: "existing: a, b".
func Existing(names []string) string {
	if len(names) == 0 {
		return "none exists"
	}
	return "existing: " + List(slices.Sorted(slices.Values(names)))
}

// List joins names for a message; of very many it counts the rest.
func List(names []string) string {
	if n := len(names) - mostNames; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), n)
	}
	return strings.Join(names, ", ")
}

func problemf(reason, format string, args ...any) Problem {
	return Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
