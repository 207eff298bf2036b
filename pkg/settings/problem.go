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

// Existing lists what there is in place of something missing, for the end of a
// message: "existing: a, b".
func Existing(names []string) string {
	if len(names) == 0 {
		return "none exists"
	}
	return "existing: " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

func problemf(reason, format string, args ...any) Problem {
	return Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
