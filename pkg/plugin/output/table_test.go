package output

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func render(t *testing.T, table Table) string {
	t.Helper()
	var b strings.Builder
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func nodes(p Palette) Table {
	return Table{
		Header: []string{"NODE", "K8S_NODE", "STATE", "REASON"},
		Rows: [][]string{
			{"demo-3fa2c", "node-1", p.Good("Running"), p.Good("none")},
			{"demo-0", "", p.Bad("Failed"), "0/3 nodes are available: 3 Insufficient memory.  preemption: none   " + strings.Repeat("long ", 40)},
		},
	}
}

func TestTableLooksLikeThoseOfKubectl(t *testing.T) {
	want := "" +
		"NODE         K8S_NODE   STATE     REASON\n" +
		"demo-3fa2c   node-1     Running   none\n" +
		"demo-0       -          Failed    0/3 nodes are available: 3 Insufficient memory.  preemption: none   " + strings.TrimSpace(strings.Repeat("long ", 40)) + "\n"
	if diff := cmp.Diff(want, render(t, nodes(Palette{}))); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestColoursDontChangeTheWidthOfColumns(t *testing.T) {
	plain, coloured := render(t, nodes(Palette{})), render(t, nodes(NewPalette(true)))
	if plain == coloured {
		t.Fatal("the coloured table has no colours")
	}
	stripped := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured, "")
	if diff := cmp.Diff(plain, stripped); diff != "" {
		t.Errorf("without its escape codes the coloured table differs (-plain +coloured):\n%s", diff)
	}
}

func TestTableWithoutHeaderOrRowsWritesOnlyWhatItHas(t *testing.T) {
	if got, want := render(t, Table{Rows: [][]string{{"a", "b"}}, Indent: "  "}), "  a   b\n"; got != want {
		t.Errorf("without header: %q, want %q", got, want)
	}
	if got, want := render(t, Table{Header: []string{"A", "B"}}), "A   B\n"; got != want {
		t.Errorf("without rows: %q, want %q", got, want)
	}
}
