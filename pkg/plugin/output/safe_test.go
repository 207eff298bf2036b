package output

import (
	"strings"
	"testing"
)

// What comes from a server may neither move the cursor nor turn other text around,
// wherever it stands; colours that were put around it stay.
func TestTablesShowNothingThatATerminalObeys(t *testing.T) {
	red := NewPalette(true).Bad
	for cell, want := range map[string]string{
		"a\x1b[2Kb":              `a\x1b[2Kb`,
		"a\u202eb\x00":           `a\u202eb\x00`,
		"a\nb":                   `a\x0ab`,
		red("gone"):              red("gone"),
		red("x\x1b]0;title\x07"): red(`x\x1b]0;title\x07`),
		"größer …":               "größer …",
	} {
		var b strings.Builder
		if err := (Table{Rows: [][]string{{cell, "end"}}}).Write(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%q is shown as %q, want %q", cell, got, want)
		}
	}
}
