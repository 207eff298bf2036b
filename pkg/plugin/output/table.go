package output

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Table is a table in kubectl's look: no lines, columns three spaces apart.
type Table struct {
	// Header of each column; empty for a table without one.
	Header []string
	// Rows of cells, which may be coloured.
	Rows [][]string
	// Indent is put before every line.
	Indent string
}

// Empty is what a cell without a value shows.
const Empty = "-"

// trailing matches the padding of the last column, which would wrap on a narrow
// terminal; tablewriter ends a coloured cell's padding with a reset.
var trailing = regexp.MustCompile(" +(\x1b\\[0m)?$")

// colour matches what a Palette puts around a text.
var colour = regexp.MustCompile("\x1b\\[[0-9]{1,2}m")

// Safe makes a text safe as Clean does, but leaves the colours that a Palette gave it.
func Safe(s string) string {
	var b strings.Builder
	from := 0
	for _, at := range colour.FindAllStringIndex(s, -1) {
		b.WriteString(escape(s[from:at[0]]) + s[at[0]:at[1]])
		from = at[1]
	}
	return b.String() + escape(s[from:])
}

// Write renders the table to w.
func (t Table) Write(w io.Writer) error {
	var buf bytes.Buffer
	table := tablewriter.NewTable(&buf,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Left: tw.Empty, Right: "   ", Overwrite: true}),
	)
	if len(t.Header) > 0 {
		table.Header(t.Header)
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			if cells[i] = Safe(c); c == "" {
				cells[i] = Empty
			}
		}
		if err := table.Append(cells); err != nil {
			return fmt.Errorf("lay out table: %w", err)
		}
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("lay out table: %w", err)
	}
	for line := range strings.Lines(buf.String()) {
		line = trailing.ReplaceAllString(t.Indent+strings.TrimSuffix(line, "\n"), "")
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
