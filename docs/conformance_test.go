package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const conformance = "docs/conformance.md"

var (
	namedTest   = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	definedTest = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	statement   = regexp.MustCompile(`(?m)^\| (S[0-9]+-[0-9]+) \| ([^|]+) \| ([^|]+) \|$`)
)

func TestEveryTestThatTheConformancePageNamesExists(t *testing.T) {
	defined := map[string]bool{}
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, match := range definedTest.FindAllStringSubmatch(read(t, name), -1) {
			defined[match[1]] = true
		}
	}
	text := read(t, conformance)
	named := namedTest.FindAllStringSubmatchIndex(text, -1)
	if len(named) == 0 {
		t.Fatal("the page names no test")
	}
	for _, at := range named {
		if test := text[at[2]:at[3]]; !defined[test] {
			t.Errorf("%s:%d: there is no %s", conformance, line(text, at[0]), test)
		}
	}
}

func TestEveryStatementOfTheConformancePageIsShownOnce(t *testing.T) {
	text := read(t, conformance)
	seen := map[string]bool{}
	for _, match := range statement.FindAllStringSubmatch(text, -1) {
		id, shown := match[1], match[3]
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		if !namedTest.MatchString(shown) && !link.MatchString(shown) {
			t.Errorf("%s names neither a test nor a page: %s", id, shown)
		}
	}
	for document, statements := range map[string]int{"S0": 87, "S1": 139, "S2": 96} {
		for n := 1; n <= statements; n++ {
			if id := fmt.Sprintf("%s-%02d", document, n); !seen[id] {
				t.Errorf("%s has no row", id)
			}
		}
	}
	if rows := strings.Count(text, "\n| S"); rows != len(seen) || rows == 0 {
		t.Errorf("%d rows, of which %d can be read", rows, len(seen))
	}
}
