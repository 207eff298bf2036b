package reach

import (
	"errors"
	"regexp"
	"strings"
)

// ephemeral matches the local address of a broken connection.
var ephemeral = regexp.MustCompile(`\S+:\d+->`)

// Stable takes out of an error what differs each time, so that the same trouble
// is the same text in conditions.
func Stable(err error) error {
	if err == nil || !ephemeral.MatchString(err.Error()) {
		return err
	}
	return errors.New(ephemeral.ReplaceAllString(err.Error(), ""))
}

// How many bytes of text the API server takes: of an event, and of a condition. It
// refuses the whole object, or the whole status, with more.
const (
	longestNote    = 1024
	longestMessage = 32768
)

// Note cuts a text to what an event can carry; the condition has all of it.
func Note(text string) string { return Cut(text, longestNote) }

// Message cuts a text to what a condition can carry.
func Message(text string) string { return Cut(text, longestMessage) }

// Cut shortens a text to a number of bytes.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}
