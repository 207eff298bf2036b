package checklist

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Count returns how many checks have each result.
func Count(checks []Row) (passed, failed, skipped int) {
	for _, row := range checks {
		switch row.Result {
		case Passed:
			passed++
		case Failed:
			failed++
		default:
			skipped++
		}
	}
	return passed, failed, skipped
}

// FailedChecks are the names of the checks that failed somewhere, each once.
func FailedChecks(checks []Row) []string {
	var names []string
	for _, row := range checks {
		if row.Result == Failed && !slices.Contains(names, row.Check) {
			names = append(names, row.Check)
		}
	}
	return names
}

// Text shows checks to a person, with what to do below, and the counts. Places with
// the same outcome share a line.
func Text(checks []Row, p output.Palette) (string, error) {
	var b bytes.Buffer
	t := output.Table{Header: []string{"CHECK", "WHERE", "RESULT", "REASON"}}
	for _, row := range merged(checks) {
		result := p.Dim(row.Result)
		switch row.Result {
		case Passed:
			result = p.Good(row.Result)
		case Failed:
			result = p.Bad(row.Result)
		}
		t.Rows = append(t.Rows, []string{row.Check, row.Where, result, row.Reason})
	}
	if err := t.Write(&b); err != nil {
		return "", err
	}
	fixes(&b, p, checks)
	passed, failed, skipped := Count(checks)
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return b.String(), nil
}

// merged joins rows that differ only in where. A node's own name in a reason is no
// difference.
func merged(checks []Row) []Row {
	type group struct {
		row   Row
		where []string
	}
	var groups []*group
	index := map[string]*group{}
	for _, row := range checks {
		if row.Where != "" && row.Result == Passed {
			row.Reason = strings.ReplaceAll(row.Reason, row.Where+".", "<node>.")
		}
		key := row.Check + "\x00" + row.Result + "\x00" + row.Reason
		g := index[key]
		if g == nil {
			g = &group{row: row}
			index[key] = g
			groups = append(groups, g)
		}
		if row.Where != "" {
			g.where = append(g.where, row.Where)
		}
	}
	out := make([]Row, 0, len(groups))
	for _, g := range groups {
		switch n := len(g.where); {
		case n == 1:
			g.row.Where = g.where[0]
		case n > 1 && g.row.Result == Failed && n <= 3:
			g.row.Where = strings.Join(g.where, ",")
		case n > 1:
			g.row.Where = fmt.Sprintf("%d places", n)
		}
		out = append(out, g.row)
	}
	return out
}

// fixes lists what to do, each thing once.
func fixes(b *bytes.Buffer, p output.Palette, checks []Row) {
	type fix struct{ text, check string }
	var list []fix
	for _, result := range []string{Failed, Skipped} {
		for _, row := range checks {
			if row.Result == result && row.Fix != "" && !slices.ContainsFunc(list, func(f fix) bool { return f.text == row.Fix }) {
				list = append(list, fix{row.Fix, row.Check})
			}
		}
	}
	for i, f := range list {
		if i == 0 {
			fmt.Fprintf(b, "\n%s\n", p.Title("What to do"))
		}
		fmt.Fprintf(b, "  %s: %s\n", f.check, f.text)
	}
}
