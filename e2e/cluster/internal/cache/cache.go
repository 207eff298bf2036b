// Package cache keeps built and fetched parts outside of the checkout. An
// entry is a directory that appears complete or not at all.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/state"
)

const unfinished = ".unfinished-"

// Cache is the cache directory, locked for this process.
type Cache struct {
	Dir  string
	lock *state.Lock
}

// Open makes the directory, waits for its lock and removes what a killed
// process left unfinished. Close releases the lock.
func Open(ctx context.Context, dir string, say func(string, ...any)) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache directory: %w", err)
	}
	lock, err := state.Acquire(ctx, filepath.Join(dir, ".lock"), func() {
		say("another process is filling the cache %s; waiting for it", dir)
	})
	if err != nil {
		return nil, err
	}
	c := &Cache{Dir: dir, lock: lock}
	leftovers, err := filepath.Glob(filepath.Join(dir, unfinished+"*"))
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, path := range leftovers {
		say("removing %s, which an interrupted run left", path)
		if err := os.RemoveAll(path); err != nil {
			return nil, errors.Join(fmt.Errorf("clean the cache: %w", err), c.Close())
		}
	}
	return c, nil
}

// Close releases the lock.
func (c *Cache) Close() error { return c.lock.Release() }

// Path is where an entry is or would be.
func (c *Cache) Path(name, key string) string { return filepath.Join(c.Dir, name+"-"+key) }

// Has reports whether an entry is there.
func (c *Cache) Has(name, key string) bool {
	_, err := os.Stat(c.Path(name, key))
	return err == nil
}

// Ensure returns the entry's directory, calling build to fill a new one if
// there is none yet.
func (c *Cache) Ensure(name, key string, build func(dir string) error) (string, error) {
	path := c.Path(name, key)
	if _, err := os.Stat(path); err == nil {
		now := time.Now()
		// The time of the last use tells what may be pruned.
		if err := os.Chtimes(path, now, now); err != nil {
			return "", fmt.Errorf("mark the cache entry as used: %w", err)
		}
		return path, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look into the cache: %w", err)
	}
	temp, err := os.MkdirTemp(c.Dir, unfinished+name+"-")
	if err != nil {
		return "", fmt.Errorf("make a cache entry: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return "", fmt.Errorf("make a cache entry: %w", err)
	}
	if err := build(temp); err != nil {
		return "", err
	}
	if err := os.Rename(temp, path); err != nil {
		return "", fmt.Errorf("put the cache entry in place: %w", err)
	}
	return path, nil
}

// Key condenses all that an entry depends on.
func Key(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:16]
}

// unusedLimit is how long an entry that nothing asks for is kept.
const unusedLimit = 14 * 24 * time.Hour

// keyPattern matches what Key makes.
var keyPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

// Prune removes entries of this name that were last asked for long ago: those
// of other versions of the sources.
func (c *Cache) Prune(now time.Time, name string) error {
	paths, err := filepath.Glob(c.Path(name, "*"))
	if err != nil {
		return fmt.Errorf("list the cache: %w", err)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("look into the cache: %w", err)
		}
		key := strings.TrimPrefix(filepath.Base(path), name+"-")
		if !keyPattern.MatchString(key) || now.Sub(info.ModTime()) < unusedLimit {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("prune the cache: %w", err)
		}
	}
	return nil
}
