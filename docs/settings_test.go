package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	definedFlag    = regexp.MustCompile(`flags\.[A-Za-z]+Var\(&[^,]+, "([a-z-]+)"`)
	documentedFlag = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|")
	variable       = regexp.MustCompile(`setting\(env, "([A-Z_]+)"`)
)

func TestTheInstallPageListsEverySettingOfTheManager(t *testing.T) {
	source, page := read(t, "cmd/manager/options.go"), read(t, "docs/install.md")
	var want, got []string
	for _, match := range definedFlag.FindAllStringSubmatch(source, -1) {
		want = append(want, match[1])
	}
	for _, match := range documentedFlag.FindAllStringSubmatch(page, -1) {
		got = append(got, match[1])
	}
	if len(want) == 0 {
		t.Fatal("no flag found in cmd/manager/options.go")
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-in cmd/manager/options.go +in docs/install.md):\n%s", diff)
	}
	for _, match := range variable.FindAllStringSubmatch(source, -1) {
		if !strings.Contains(page, "| `"+match[1]+"` |") {
			t.Errorf("docs/install.md lacks the setting %s", match[1])
		}
	}
}
