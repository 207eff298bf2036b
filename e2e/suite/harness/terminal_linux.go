//go:build e2e

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is a command that runs on a terminal of its own.
type Terminal struct {
	cmd    *exec.Cmd
	master *os.File
	read   sync.WaitGroup

	mu     sync.Mutex
	screen bytes.Buffer
}

// OnTerminal starts kubectl, or the plugin through it, as a person at a terminal
// of 120 columns does.
func (s *Space) OnTerminal(args ...string) *Terminal {
	s.t.Helper()
	term, err := openTerminal(s.Command(s.t.Context(), append(args, "-n", s.Name)...))
	if err != nil {
		s.t.Fatalf("run kubectl on a terminal: %v", err)
	}
	return term
}

func openTerminal(cmd *exec.Cmd) (*Terminal, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	t := &Terminal{cmd: cmd, master: os.NewFile(uintptr(fd), "/dev/ptmx")}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up a terminal: %w", err), t.master.Close())
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a terminal: %w", err), t.master.Close())
	}
	defer func() { _ = slave.Close() }() // the command has its own
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, t.master.Close())
	}
	t.read.Go(t.copy)
	return t, nil
}

// copy ends when the command and all that it started are gone.
func (t *Terminal) copy() {
	buffer := make([]byte, 4096)
	for {
		n, err := t.master.Read(buffer)
		t.mu.Lock()
		t.screen.Write(buffer[:n])
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Shown is all that was written to the terminal so far.
func (t *Terminal) Shown() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.String()
}

// WaitFor waits until a text was shown.
func (t *Terminal) WaitFor(tb testing.TB, text string, within time.Duration) {
	tb.Helper()
	err := until(tb.Context(), within, func() error {
		if shown := t.Shown(); !strings.Contains(shown, text) {
			return fmt.Errorf("the terminal shows %q", shown)
		}
		return nil
	})
	if err != nil {
		tb.Fatalf("wait for %q on the terminal: %v", text, err)
	}
}

// Type types a text; "\x03" is Ctrl-C.
func (t *Terminal) Type(tb testing.TB, text string) {
	tb.Helper()
	if _, err := t.master.WriteString(text); err != nil {
		tb.Fatalf("type on the terminal: %v", err)
	}
}

// Wait waits until the command ends and returns its exit code.
func (t *Terminal) Wait(tb testing.TB, within time.Duration) int {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), within)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- t.cmd.Wait() }()
	select {
	case err := <-ended:
		t.read.Wait()
		if closing := t.master.Close(); closing != nil {
			tb.Errorf("close the terminal: %v", closing)
		}
		return ExitCode(err)
	case <-ctx.Done():
		tb.Fatalf("the command did not end within %s; the terminal shows %q", within, t.Shown())
		return -1
	}
}
