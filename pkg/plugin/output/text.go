package output

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// Clean makes text that came from a server safe and fit for one line of a
// terminal: runs of white space become one blank, and what could move the cursor or
// rewrite or reorder other text is shown as \x1b, \u202e and so on.
func Clean(s string) string { return escape(strings.Join(strings.Fields(s), " ")) }

func escape(s string) string {
	if !strings.ContainsFunc(s, unsafe) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !unsafe(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// unsafe are control characters and those that format text, such as by its direction.
func unsafe(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// Width is how many columns of a terminal a line takes; escape sequences take
// none.
func Width(s string) int { return twwidth.Width(s) }

// Shorten cuts a line to at most width columns, the last one then being "…".
// Colours stay, and end with the line.
func Shorten(s string, width int) string {
	if width <= 0 || Width(s) <= width {
		return s
	}
	return twwidth.Truncate(s, width, "…")
}

// Plural counts things: "1 shard", "3 shards".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Shape puts the shape of a cluster in words.
func Shape(shards, replicas int32) string {
	with := "without replicas"
	if replicas > 0 {
		with = "with " + Plural(int(replicas), "replica") + " each"
	}
	return Plural(int(shards), "shard") + " " + with
}

// Arguments says which arguments were given, for messages about their number.
func Arguments(args []string) string {
	if len(args) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %q", len(args), args)
}
