// Package commands renders the reference pages of the plugin's commands from
// their own help.
package commands

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

const notice = "<!-- Made by make generate from the command's own help; edits are lost. -->\n\n"

// Pages renders a page for the command and for each below it that help shows,
// by file name.
func Pages(root *cobra.Command) (map[string]string, error) {
	pages := map[string]string{}
	var visit func(*cobra.Command) error
	visit = func(c *cobra.Command) error {
		// The same binary twice must give the same text, so no date.
		c.DisableAutoGenTag = true
		c.InitDefaultHelpFlag()
		var page bytes.Buffer
		page.WriteString(notice)
		if err := doc.GenMarkdownCustom(c, &page, func(name string) string { return name }); err != nil {
			return fmt.Errorf("render the page of %q: %w", c.CommandPath(), err)
		}
		pages[fileName(c)] = strings.TrimRight(page.String(), "\n") + "\n"
		for _, child := range c.Commands() {
			if !child.IsAvailableCommand() || child.IsAdditionalHelpTopicCommand() {
				continue
			}
			if err := visit(child); err != nil {
				return err
			}
		}
		return nil
	}
	if err := visit(root); err != nil {
		return nil, err
	}
	return pages, nil
}

func fileName(c *cobra.Command) string {
	return strings.ReplaceAll(c.CommandPath(), " ", "_") + ".md"
}

// Write makes dir hold exactly the pages.
func Write(dir string, pages map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the commands' pages: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return fmt.Errorf("list the commands' pages: %w", err)
	}
	for _, file := range old {
		if _, ok := pages[filepath.Base(file)]; ok {
			continue
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("remove the page of a command that is gone: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(pages[name]), 0o644); err != nil {
			return fmt.Errorf("write a command's page: %w", err)
		}
	}
	return nil
}
