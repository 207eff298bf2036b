//go:build linux

package components

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cache"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/proc"
)

// Builder builds components into a cache.
type Builder struct {
	Source string // the checkout
	Cache  *cache.Cache
	Logs   string
	Say    func(string, ...any)
}

// Build returns the directory that holds the component's program, or its links.
func (b Builder) Build(ctx context.Context, c Component) (string, error) {
	key, err := b.Key(ctx, c)
	if err != nil {
		return "", err
	}
	return b.Cache.Ensure(c.Name, key, func(out string) error {
		b.Say("building %s (first time only: %s)", c.Name, c.Takes)
		logFile := filepath.Join(b.Logs, "build-"+c.Name+".log")
		log, err := os.Create(logFile)
		if err != nil {
			return fmt.Errorf("open the build log: %w", err)
		}
		defer log.Close()
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", c.LDFlags, "-o", filepath.Join(out, c.Name), c.Package)
		cmd.Dir = filepath.Join(b.Source, c.Dir)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = proc.DieWithParent()
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("build %s: %w; see %s", c.Name, err, logFile)
		}
		for _, link := range c.Links {
			if err := os.Symlink(c.Name, filepath.Join(out, link)); err != nil {
				return fmt.Errorf("name %s: %w", link, err)
			}
		}
		for _, folder := range c.Folders {
			if err := b.copyFolder(ctx, c, folder, out); err != nil {
				return fmt.Errorf("copy %s of module %s: %w", folder.Path, folder.Module, err)
			}
		}
		return nil
	})
}

func (b Builder) copyFolder(ctx context.Context, c Component, folder Folder, out string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", folder.Module)
	cmd.Dir = filepath.Join(b.Source, c.Dir)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	module, err := cmd.Output()
	if err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(out, folder.Name), os.DirFS(filepath.Join(strings.TrimSpace(string(module)), folder.Path)))
}

// Key condenses what the component's program depends on: its module files and
// sources, the Go version, the target and the flags.
func (b Builder) Key(ctx context.Context, c Component) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = filepath.Join(b.Source, c.Dir)
	version, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask go for its version: %w; install Go 1.26 or newer", err)
	}
	return key(os.DirFS(filepath.Join(b.Source, c.Dir)), c, strings.TrimSpace(string(version)), runtime.GOOS+"/"+runtime.GOARCH)
}
