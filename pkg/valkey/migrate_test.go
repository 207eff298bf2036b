package valkey

import (
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// S-04
func TestExportsAreWrittenAsOneCommand(t *testing.T) {
	set := func(s string) slots.Set {
		parsed, err := slots.ParseSet(s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	got := strings.Join(exportWords([]Export{
		{Slots: set("0-9 20-29"), TargetID: "B"}, {TargetID: "X"}, {Slots: set("10-19"), TargetID: "C"},
	}), " ")
	if want := "SLOTSRANGE 0 9 20 29 NODE B SLOTSRANGE 10 19 NODE C"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
