package output

import (
	"fmt"
	"strings"
	"unicode"
)

// Clean makes text that came from a server safe and fit for one line of a
// terminal: runs of white space become one blank, and control characters, which
// could move the cursor or rewrite what stands above, are shown as \x1b and so
// on.
func Clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Shorten cuts s to at most width characters, the last one then being "…".
func Shorten(s string, width int) string {
	runes := []rune(s)
	if width <= 0 || len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}

// Plural counts things: "1 shard", "3 shards".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
