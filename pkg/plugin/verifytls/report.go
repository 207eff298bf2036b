package verifytls

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Report is what "verify-tls" prints as JSON or YAML. Its form is stable: fields are
// added, never renamed or removed.
type Report struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Secret    string `json:"secret"`
	// Certificate is the leaf of the Secret, unset when it can't be read.
	Certificate *Certificate `json:"certificate,omitempty"`
	// Passed, Failed and Skipped count the checks.
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Checks in the order in which they build on each other.
	Checks []Row `json:"checks"`
}

// Certificate is the leaf that nodes should serve.
type Certificate struct {
	Subject     string    `json:"subject"`
	Issuer      string    `json:"issuer"`
	Fingerprint string    `json:"fingerprint"`
	DNSNames    []string  `json:"dnsNames"`
	NotBefore   time.Time `json:"notBefore"`
	NotAfter    time.Time `json:"notAfter"`
	// DaysLeft until NotAfter, rounded down; negative once it is over.
	DaysLeft int `json:"daysLeft"`
}

func (r *Report) count() {
	r.Passed, r.Failed, r.Skipped = 0, 0, 0
	for _, row := range r.Checks {
		switch row.Result {
		case Passed:
			r.Passed++
		case Failed:
			r.Failed++
		default:
			r.Skipped++
		}
	}
}

// failure is the error that a report with failed checks exits with.
func (r *Report) failure() error {
	if r.Failed == 0 {
		return nil
	}
	var names []string
	for _, row := range r.Checks {
		if row.Result == Failed && !slices.Contains(names, row.Check) {
			names = append(names, row.Check)
		}
	}
	return fmt.Errorf("%s of the TLS of cluster %s in namespace %s failed: %s", output.Plural(r.Failed, "check"), r.Name, r.Namespace, strings.Join(names, ", "))
}

// text shows the report to a person. Places with the same outcome share a line.
func (r *Report) text(p output.Palette) (string, error) {
	var b bytes.Buffer
	line := func(key, value string) {
		fmt.Fprintf(&b, "%s %s\n", p.Title(fmt.Sprintf("%-12s", key+":")), value)
	}
	line("Cluster", r.Namespace+"/"+r.Name)
	line("Secret", r.Secret)
	if c := r.Certificate; c != nil {
		line("Certificate", fmt.Sprintf("%s, issued by %s", output.Clean(c.Subject), output.Clean(c.Issuer)))
		line("Valid until", fmt.Sprintf("%s (%s)", date(c.NotAfter), left(c.DaysLeft)))
	}
	b.WriteString("\n")
	t := output.Table{Header: []string{"CHECK", "WHERE", "RESULT", "REASON"}}
	for _, row := range merged(r.Checks) {
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
	fixes(&b, p, r.Checks)
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d skipped\n", r.Passed, r.Failed, r.Skipped)
	return b.String(), nil
}

func left(days int) string {
	if days < 0 {
		return "expired"
	}
	return output.Plural(days, "day") + " left"
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
