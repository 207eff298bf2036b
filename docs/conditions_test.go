package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// constants reads the string constants whose names have a prefix from the file
// that defines all conditions and reasons.
func constants(t *testing.T, prefix string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "pkg", "api", "v1alpha1", "conditions.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if !strings.HasPrefix(name.Name, prefix) || i >= len(spec.Values) {
				continue
			}
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s is no literal", name.Name)
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("no constant starts with %s", prefix)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

var firstCell = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|")

// rows are the names in the first column of the tables under a heading.
func rows(t *testing.T, page, heading string) []string {
	t.Helper()
	_, section, ok := strings.Cut(read(t, page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, match := range firstCell.FindAllStringSubmatch(section, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return names
}

func TestTheConditionsPageListsEveryTypeAndReasonOnce(t *testing.T) {
	const page = "docs/reference/conditions.md"
	for heading, prefix := range map[string]string{"Types": "Condition", "Reasons": "Reason"} {
		if diff := cmp.Diff(constants(t, prefix), rows(t, page, heading)); diff != "" {
			t.Errorf("%s of %s (-in pkg/api/v1alpha1/conditions.go +in the page):\n%s", heading, page, diff)
		}
	}
}
