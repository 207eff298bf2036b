package docs_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page lists every series that is defined, once.
func TestTheMetricsPageListsEverySeries(t *testing.T) {
	name := regexp.MustCompile(`"(valkey_[a-z_]+)"`)
	var defined []string
	for _, file := range []string{"pkg/metrics/metrics.go", "pkg/metrics/gauges.go"} {
		for _, m := range name.FindAllStringSubmatch(read(t, file), -1) {
			defined = append(defined, m[1])
		}
	}
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(valkey_[a-z_]+)` \\|").FindAllStringSubmatch(read(t, "docs/reference/metrics.md"), -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(defined)
	slices.Sort(listed)
	if diff := cmp.Diff(defined, listed); diff != "" || len(listed) == 0 {
		t.Errorf("series (-code +page):\n%s", diff)
	}
}
