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

// longestNote is how many bytes of text an event may have.
const longestNote = 1024

// Note cuts a text to what an event can carry; the condition has all of it.
func Note(text string) string {
	if len(text) <= longestNote {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:longestNote-len(more)], "") + more
}
