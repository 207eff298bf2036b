// Package state remembers what runs, and keeps two commands from changing it
// at once.
package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock is an exclusive lock on a file. The kernel releases it when the holder
// dies, however it dies; children don't inherit it.
type Lock struct{ file *os.File }

// Acquire takes the lock, calling waiting once if somebody else holds it.
func Acquire(ctx context.Context, path string, waiting func()) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	for told := false; ; {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &Lock{file: file}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if !told {
			waiting()
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for the lock %s: %w", path, ctx.Err()), file.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Release gives the lock back.
func (l *Lock) Release() error { return l.file.Close() }
