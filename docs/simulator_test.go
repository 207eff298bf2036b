package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page lists every check of the simulator, once.
func TestTheDevelopmentPageListsEveryCheckOfTheSimulator(t *testing.T) {
	files, err := filepath.Glob("../pkg/plan/sim/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, file := range files {
		for _, m := range regexp.MustCompile(`violation\("([^"]+)"`).FindAllStringSubmatch(read(t, strings.TrimPrefix(file, "../")), -1) {
			made = append(made, m[1])
		}
	}
	slices.Sort(made)
	made = slices.Compact(made)
	page := read(t, "docs/development.md")
	_, section, _ := strings.Cut(page, "## What the simulator checks\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(listed)
	if diff := cmp.Diff(made, listed); diff != "" || len(listed) == 0 {
		t.Errorf("checks (-code +page):\n%s", diff)
	}
}
