//go:build e2e

package harness

import (
	"os"
	"path/filepath"
)

// lookup finds a program in a PATH other than this process's; without it the name
// itself, which fails when it is run.
func lookup(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file
		}
	}
	return name
}
