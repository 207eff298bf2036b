package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/kubectl-valkey/kubectl-valkey/docs/internal/commands"
)

func tree() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{
		Use: "kubectl-valkey", Short: "Valkey on Kubernetes", Run: run,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl valkey"},
	}
	root.AddCommand(
		&cobra.Command{Use: "status NAME", Short: "Show a cluster", Run: run},
		&cobra.Command{Use: "secret", Short: "Not for people", Hidden: true, Run: run},
	)
	return root
}

func TestPagesCoverTheCommandsThatHelpShows(t *testing.T) {
	pages, err := commands.Pages(tree())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range []string{"kubectl_valkey.md", "kubectl_valkey_status.md"} {
		if _, ok := pages[name]; ok {
			names = append(names, name)
		}
	}
	if len(names) != 2 || len(pages) != 2 {
		t.Errorf("want the pages of two commands, got %v of %d", names, len(pages))
	}
	if page := pages["kubectl_valkey.md"]; !strings.Contains(page, "(kubectl_valkey_status.md)") {
		t.Errorf("the root's page has no link to status:\n%s", page)
	}
	if page := pages["kubectl_valkey_status.md"]; !strings.Contains(page, "kubectl valkey status NAME") {
		t.Errorf("the page writes the command otherwise than people type it:\n%s", page)
	}
}

func TestPagesAreTheSameTwice(t *testing.T) {
	first, err := commands.Pages(tree())
	if err != nil {
		t.Fatal(err)
	}
	second, err := commands.Pages(tree())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
}

func TestWriteRemovesThePageOfACommandThatIsGone(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "kubectl_valkey_old.md")
	if err := os.WriteFile(gone, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := commands.Write(dir, map[string]string{"kubectl_valkey.md": "new"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("the old page is still there: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "kubectl_valkey.md")); err != nil || string(text) != "new" {
		t.Errorf("got %q, %v", text, err)
	}
}
