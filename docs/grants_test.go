package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
)

var password = regexp.MustCompile(` resetpass(?: #[0-9a-f]{64})+`)

// systemUsers are the lines of a users.acl that are for the manager's own users. The
// marker, which has no rights, is none.
func systemUsers(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "user _momento_") && !strings.HasPrefix(line, "user _momento_rev_") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestTheNetworkPageShowsTheGrantsThatAreRendered(t *testing.T) {
	hash := []string{acl.Hash("secret")}
	file, problems := acl.Render(acl.Input{OperatorHashes: hash, ReplicationHashes: hash})
	if len(problems) > 0 {
		t.Fatalf("%+v", problems)
	}
	want := systemUsers(password.ReplaceAllString(file, ""))
	if len(want) != 2 || slices.Contains(want, "") {
		t.Fatalf("want two system users, got %q", want)
	}
	if diff := cmp.Diff(want, systemUsers(read(t, "docs/network.md"))); diff != "" {
		t.Errorf("grants (-in force +in docs/network.md):\n%s", diff)
	}
}
