package settings

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// maxmemory is the one setting of the server that depends on the pod's resources.
const maxmemory = "maxmemory"

// directiveName is what a key may look like; the CRD has the same rule.
var directiveName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9._-]*$`)

// Check reports settings that can't be used. What only the server can judge, such
// as a directive that it doesn't know, is left to the server.
func Check(r Resolved) []Problem {
	var problems []Problem
	for _, key := range slices.SortedFunc(maps.Keys(r.Valkey), byDirective) {
		if text := refusal(key, r.Valkey[key]); text != "" {
			problems = append(problems, problemf(v1alpha1.ReasonSettingRefused, "%s %s", r.describe(key), text))
		}
	}
	return append(problems, checkMemory(r)...)
}

// refusal says why a setting can't be used, or nothing.
func refusal(key, value string) string {
	switch {
	case !directiveName.MatchString(key):
		return "is not a directive's name: remove it"
	case IsManaged(key):
		return "is set by the manager and can't be overridden: remove it"
	case strings.ContainsFunc(value, isBreak):
		return "has a value with a line break or control character: one directive a key, on one line"
	}
	all, closed := words(value)
	switch {
	case !closed:
		return "has a value with an unclosed quote: the server would not start"
	case len(all) == 0 && value != "":
		return "has a value of spaces only: the server would not start; leave it empty"
	case len(all) > 1 && oneWord[strings.ToLower(key)]:
		return fmt.Sprintf("has %d values, but takes one: the server would not start; put it into double quotes, as \"%s\"", len(all), strings.Join(all, " "))
	}
	if strings.EqualFold(key, maxmemory) {
		if _, err := parseMaxMemory(value); err != nil {
			return "can't be used: " + err.Error()
		}
	}
	return ""
}

// parseMaxMemory reads the value of maxmemory, which may be quoted, in bytes.
func parseMaxMemory(value string) (int64, error) { return ParseBytes(Plain(value)) }

// isBreak holds for what could end a line or cut it short in the server's parser.
func isBreak(r rune) bool { return r != '\t' && r < ' ' || r == 0x7f }

func checkMemory(r Resolved) []Problem {
	if r.Memory == nil {
		return nil
	}
	var problems []Problem
	for _, key := range slices.SortedFunc(maps.Keys(r.Valkey), byDirective) {
		if !strings.EqualFold(key, maxmemory) {
			continue
		}
		if size, err := parseMaxMemory(r.Valkey[key]); err == nil && size > r.Memory.Value() {
			problems = append(problems, problemf(v1alpha1.ReasonMemoryExceeded,
				"%s is %s, which is above the memory limit of %s: the pod would be killed before the server evicts; lower it or raise resources.memory",
				r.describe(key), r.Valkey[key], r.Memory.String()))
		}
	}
	return problems
}

// describe names a setting where the user wrote it.
func (r Resolved) describe(key string) string {
	source, ok := r.Sources[key]
	if !ok {
		return fmt.Sprintf("valkey key %q", key)
	}
	return fmt.Sprintf("ValkeyConfig %q: valkey key %q", source.Config, source.Key)
}
