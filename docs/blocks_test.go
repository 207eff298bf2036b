package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	plugin "github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/root"
)

var block = regexp.MustCompile("(?s)\n *```sh\n(.*?\n) *```")

// commandLine is a line of a block, without what a shell makes of it.
type commandLine struct {
	page string
	line int
	text string
}

// commandLines are the lines of all blocks of commands on all pages.
func commandLines(t *testing.T) []commandLine {
	t.Helper()
	var all []commandLine
	for _, page := range pages(t) {
		text := read(t, page)
		for _, at := range block.FindAllStringSubmatchIndex(text, -1) {
			number := line(text, at[2])
			for command := range strings.Lines(text[at[2]:at[3]]) {
				command, _, _ = strings.Cut(command, " #")
				if command = strings.TrimSpace(command); command != "" && !strings.HasPrefix(command, "#") {
					all = append(all, commandLine{page, number, command})
				}
				number++
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d commands found", len(all))
	}
	return all
}

// Every command of every page exists, with the flags that it is given: those of the
// plugin parse, targets of make and files of the checkout are there.
func TestEveryCommandOfThePagesExists(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	for _, c := range commandLines(t) {
		words := strings.Fields(c.text)
		for strings.Contains(words[0], "=") && len(words) > 1 { // an assignment before the command
			words = words[1:]
		}
		switch {
		case len(words) > 1 && words[0] == "kubectl" && words[1] == "valkey":
			checkPlugin(t, c, words[2:])
		case words[0] == "make":
			for _, word := range words[1:] {
				if !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") && !targets[word] {
					t.Errorf("%s:%d: make has no target %s", c.page, c.line, word)
				}
			}
		}
		checkFiles(t, c, words)
	}
}

func checkPlugin(t *testing.T, c commandLine, words []string) {
	t.Helper()
	for i, word := range words {
		if word == ">" || word == "|" || word == "--" {
			words = words[:i]
			break
		}
	}
	command := plugin.New(plugin.Surroundings{
		Streams: genericiooptions.NewTestIOStreamsDiscard(), Clock: clock.RealClock{}, Getenv: func(string) string { return "" },
	})
	found, rest, err := command.Find(words)
	if err != nil {
		t.Errorf("%s:%d: %q: %v", c.page, c.line, c.text, err)
		return
	}
	if found == command && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		t.Errorf("%s:%d: the plugin has no command %s", c.page, c.line, words[0])
	}
	if err := found.ParseFlags(rest); err != nil {
		t.Errorf("%s:%d: %q: %v", c.page, c.line, c.text, err)
	}
}

// built are folders that appear by building.
var built = []string{"bin/", "dist/"}

// checkFiles looks for files of the checkout that a command names.
func checkFiles(t *testing.T, c commandLine, words []string) {
	t.Helper()
	for _, word := range words {
		word = strings.TrimPrefix(word, "./")
		inCheckout := false
		for _, dir := range []string{"deploy/", "docs/", "e2e/", "pkg/", "cmd/"} {
			inCheckout = inCheckout || strings.HasPrefix(word, dir)
		}
		for _, dir := range built {
			inCheckout = inCheckout && !strings.HasPrefix(word, dir)
		}
		if !inCheckout || strings.HasSuffix(word, "...") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, word)); err != nil {
			t.Errorf("%s:%d: %s is not in the checkout", c.page, c.line, word)
		}
	}
}
