package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func open(t *testing.T, dir string) *Cache {
	t.Helper()
	c, err := Open(t.Context(), dir, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func closeCache(t *testing.T, c *Cache) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnEntryIsBuiltOnce(t *testing.T) {
	c := open(t, t.TempDir())
	defer closeCache(t, c)
	builds := 0
	for range 2 {
		path, err := c.Ensure("thing", "k", func(dir string) error {
			builds++
			return os.WriteFile(filepath.Join(dir, "f"), []byte("content"), 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(path, "f")); err != nil || string(content) != "content" {
			t.Errorf("the entry holds %q, %v", content, err)
		}
	}
	if builds != 1 {
		t.Errorf("built %d times", builds)
	}
}

func TestAFailedBuildLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	defer closeCache(t, c)
	broken := errors.New("broken")
	if _, err := c.Ensure("thing", "k", func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*thing*")); left != nil {
		t.Errorf("left %v", left)
	}
}

func TestOpeningRemovesWhatAKilledRunLeft(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, unfinished+"thing-1")
	if err := os.MkdirAll(filepath.Join(left, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	closeCache(t, open(t, dir))
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
}

func TestPruningKeepsWhatIsInUseOrRecent(t *testing.T) {
	c := open(t, t.TempDir())
	defer closeCache(t, c)
	now := time.Now()
	for path, age := range map[string]time.Duration{
		"thing-current": time.Hour, "thing-0123456789abcdef": 30 * 24 * time.Hour, "thing-fedcba9876543210": time.Hour,
		"thing-old-0123456789abcdef": 30 * 24 * time.Hour, "other": 30 * 24 * time.Hour,
	} {
		dir := filepath.Join(c.Dir, path)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Prune(now, "thing"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"thing-current": true, "thing-0123456789abcdef": false, "thing-fedcba9876543210": true, "thing-old-0123456789abcdef": true, "other": true,
	} {
		if _, err := os.Stat(filepath.Join(c.Dir, path)); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", path, err == nil, want)
		}
	}
}
