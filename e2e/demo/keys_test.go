package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// replies plays valkey-cli against two nodes, a for even keys and b for odd ones.
func replies() []string {
	var lines []string
	for _, verb := range []string{"SET", "GET"} {
		for i := range keyCount {
			reply := "OK"
			if verb == "GET" {
				reply = value(i)
			}
			if i%2 == 1 {
				lines = append(lines, "-> Redirected to slot [10289] located at 10.244.1.3:6379")
			}
			lines = append(lines, reply, string(rune('a'+i%2)), fmt.Sprint(100-i))
		}
	}
	return lines
}

func TestScriptAsksForEveryReplyThatIsParsed(t *testing.T) {
	if got, want := strings.Count(script(), "\n"), len(slices.DeleteFunc(replies(), redirect)); got != want {
		t.Errorf("the script has %d commands, its replies %d lines", got, want)
	}
}

func TestParseFindsWhoAnswered(t *testing.T) {
	answers, err := parse(strings.Join(replies(), "\n") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) != keyCount {
		t.Fatalf("want %d answers, got %d", keyCount, len(answers))
	}
	if got, want := answers[3], (answer{key: "demo:3", slot: 97, node: "b"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseRefusesWhatWentWrong(t *testing.T) {
	tests := map[string]struct {
		change func([]string) []string
		want   string
	}{
		"a write that failed":            {func(l []string) []string { l[0] = "CLUSTERDOWN Hash slot not served"; return l }, "CLUSTERDOWN"},
		"a read of another value":        {func(l []string) []string { l[3*keyCount] = "value-9"; return l }, `want reply "value-0", got "value-9"`},
		"a read from another node":       {func(l []string) []string { l[3*keyCount+1] = "c"; return l }, "was written to node a and read from c"},
		"a slot that is none":            {func(l []string) []string { l[3*keyCount+2] = "ERR"; return l }, "read the slot"},
		"a server that can't be dialled": {func([]string) []string { return []string{"Could not connect to Valkey"} }, "Could not connect"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(strings.Join(tt.change(slices.DeleteFunc(replies(), redirect)), "\n"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want an error with %q, got %v", tt.want, err)
			}
		})
	}
}

func TestReportNamesPodsAndSortsBySlot(t *testing.T) {
	answers, err := parse(strings.Join(replies(), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	report(&out, answers, map[string]string{"a": "demo-00aaa", "b": "demo-11bbb"})
	for _, want := range []string{
		"100 keys were written and read back", "demo-00aaa     answered for 50 keys", "demo-11bbb     answered for 50 keys",
		"  demo:5         95  demo-11bbb\n  demo:4         96  demo-00aaa\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}
