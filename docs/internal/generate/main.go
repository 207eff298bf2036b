// Command generate makes the reference pages of docs/ anew. It runs from the
// root of the checkout, as make generate does.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/docs/internal/commands"
	"github.com/kubectl-valkey/kubectl-valkey/docs/internal/kinds"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/root"
)

func main() {
	reference := filepath.Join("docs", "reference")
	for _, err := range []error{
		writeKinds(filepath.Join("deploy", "crd"), filepath.Join(reference, "kinds.md")),
		writeCommands(filepath.Join(reference, "commands")),
	} {
		if err != nil {
			fmt.Fprintln(os.Stderr, "error: generate the reference pages:", err)
			os.Exit(1)
		}
	}
}

func writeKinds(crdDir, page string) error {
	files, err := filepath.Glob(filepath.Join(crdDir, "*_*.yaml"))
	if err != nil {
		return fmt.Errorf("list the CRDs: %w", err)
	}
	var crds [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a CRD: %w", err)
		}
		crds = append(crds, text)
	}
	text, err := kinds.Page(crds...)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		return fmt.Errorf("make the folder of the reference: %w", err)
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

func writeCommands(dir string) error {
	// Defaults of some flags lie in the home directory; whose is not the pages'
	// business.
	if err := os.Setenv("HOME", "/home/you"); err != nil {
		return fmt.Errorf("set HOME: %w", err)
	}
	pages, err := commands.Pages(root.New(root.Surroundings{
		Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard},
		Clock:   clock.RealClock{},
		Getenv:  func(string) string { return "" },
	}))
	if err != nil {
		return err
	}
	return commands.Write(dir, pages)
}
