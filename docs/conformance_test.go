package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every statement has a row, and every test that a row names exists.
func TestTheConformanceOfTheNetworkNamesTestsThatExist(t *testing.T) {
	defined := map[string]bool{}
	definition := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	for _, name := range tracked(t) {
		if strings.HasSuffix(filepath.Base(name), "_test.go") {
			for _, m := range definition.FindAllStringSubmatch(read(t, name), -1) {
				defined[m[1]] = true
			}
		}
	}
	page := read(t, "docs/conformance-network.md")
	for n := 1; n <= 87; n++ {
		id := fmt.Sprintf("S0-%02d", n)
		_, rest, ok := strings.Cut(page, "| "+id+" | ")
		if !ok {
			t.Errorf("%s has no row", id)
			continue
		}
		row, _, _ := strings.Cut(rest, "\n")
		cells := strings.Split(row, " | ")
		if len(cells) != 3 {
			t.Errorf("%s: %d cells: %s", id, len(cells), row)
			continue
		}
		if strings.TrimSpace(cells[1]) == "" && strings.Trim(cells[2], " |") == "" {
			t.Errorf("%s names neither a test nor a reason why there is none", id)
		}
	}
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(page, -1) {
		if !defined[m[1]] {
			t.Errorf("%s does not exist", m[1])
		}
	}
}
