// Command generate makes the reference pages of docs/ anew. It runs from the
// root of the checkout, as make generate does.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubectl-valkey/kubectl-valkey/docs/internal/kinds"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate the reference pages:", err)
		os.Exit(1)
	}
}

func run() error {
	return writeKinds(filepath.Join("deploy", "crd"), filepath.Join("docs", "reference", "kinds.md"))
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
