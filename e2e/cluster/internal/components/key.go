package components

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cache"
)

func key(module fs.FS, c Component, goVersion, target string) (string, error) {
	files, err := fs.Glob(module, "*")
	if err != nil {
		return "", fmt.Errorf("list the sources of %s: %w", c.Name, err)
	}
	slices.Sort(files)
	parts := []string{goVersion, target, c.Package, c.LDFlags, strings.Join(c.Links, ",")}
	for _, folder := range c.Folders {
		parts = append(parts, folder.Module, folder.Path, folder.Name)
	}
	for _, file := range files {
		if file != "go.mod" && file != "go.sum" && !strings.HasSuffix(file, ".go") {
			continue
		}
		content, err := fs.ReadFile(module, file)
		if err != nil {
			return "", fmt.Errorf("read the sources of %s: %w", c.Name, err)
		}
		parts = append(parts, file, string(content))
	}
	return cache.Key(parts...), nil
}
