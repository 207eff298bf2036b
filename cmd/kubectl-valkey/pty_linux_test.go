package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// terminal is a pseudo-terminal: what a process writes to it collects in text.
type terminal struct {
	slave *os.File

	mu   sync.Mutex
	text bytes.Buffer
	// wrote gets a value after each write.
	wrote chan struct{}
	over  chan struct{}
}

// openTerminal opens a pseudo-terminal of 120 columns and 40 lines.
func openTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 120, Row: 40}); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{slave: slave, wrote: make(chan struct{}, 1), over: make(chan struct{})}
	go term.collect(master)
	return term
}

// collect reads until the last process that has the terminal open is gone.
func (t *terminal) collect(master io.ReadCloser) {
	defer close(t.over)
	defer func() { _ = master.Close() }()
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		t.mu.Lock()
		t.text.Write(buf[:n])
		t.mu.Unlock()
		select {
		case t.wrote <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// String is what was written so far; terminals end lines with \r\n.
func (t *terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ReplaceAll(t.text.String(), "\r\n", "\n")
}

// start runs the program on the terminal.
func (t *terminal) start(tt *testing.T, cmd *exec.Cmd) {
	tt.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.slave, t.slave, t.slave
	if err := cmd.Start(); err != nil {
		tt.Fatal(err)
	}
	_ = t.slave.Close()
}

// onTerminal runs the program to its end and returns what a person saw.
func onTerminal(t *testing.T, env []string, args ...string) (text string, code int) {
	t.Helper()
	term := openTerminal(t)
	cmd := command(t, env, args...)
	term.start(t, cmd)
	code = exitCode(t, cmd.Wait())
	<-term.over
	return term.String(), code
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[a-zA-Z]")

// P-07
func TestColoursAreForPeople(t *testing.T) {
	server := newAPIServer(t, inNamespace("team-a", plugintest.Active("demo", 3, 1))...)
	config := "KUBECONFIG=" + kubeconfig(t, server.config("{token: t}"))
	xterm := "TERM=xterm-256color"
	args := []string{"status", "demo"}

	coloured, code := onTerminal(t, []string{config, xterm}, args...)
	if code != 0 || !escapes.MatchString(coloured) {
		t.Fatalf("exit %d, and no colours on a terminal:\n%s", code, coloured)
	}
	piped := run(t, []string{config, xterm}, args...)
	if strings.Contains(piped.stdout+piped.stderr, "\x1b") {
		t.Error("a pipe got escape codes")
	}
	if escapes.ReplaceAllString(coloured, "") != piped.stdout {
		t.Errorf("without escape codes a terminal shows other columns than a pipe:\n%s\n%s", coloured, piped.stdout)
	}
	for name, env := range map[string][]string{"NO_COLOR": {config, xterm, "NO_COLOR=1"}, "TERM=dumb": {config, "TERM=dumb"}} {
		for _, args := range [][]string{args, {"status"}, {"status", "-A"}, {"status", "nope"}} {
			if text, _ := onTerminal(t, env, args...); strings.Contains(text, "\x1b") {
				t.Errorf("%s: %v has escape codes", name, args)
			}
		}
	}
	if text, _ := onTerminal(t, []string{config, xterm}, append(args, "--color=never")...); strings.Contains(text, "\x1b") {
		t.Error("--color=never has escape codes")
	}
	if r := run(t, []string{config}, append(args, "--color=always")...); !strings.Contains(r.stdout, "\x1b[") {
		t.Error("--color=always has no colours in a pipe")
	}
}

// P-06
func TestCtrlCEndsAWatchWith130(t *testing.T) {
	server := newAPIServer(t, inNamespace("team-a", plugintest.Active("demo", 1, 1))...)
	for name, env := range map[string]string{"drawing": "TERM=xterm", "appending": "TERM=dumb"} {
		t.Run(name, func(t *testing.T) {
			term := openTerminal(t)
			cmd := command(t, []string{"KUBECONFIG=" + kubeconfig(t, server.config("{token: t}")), env}, "status", "demo", "-w")
			term.start(t, cmd)
			for !strings.Contains(term.String(), "Conditions") {
				select {
				case <-term.wrote:
				case <-term.over:
					t.Fatalf("it ended by itself: %s", term)
				}
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := exitCode(t, cmd.Wait()); code != 130 {
				t.Errorf("exit %d, want 130", code)
			}
			<-term.over
			if !strings.HasSuffix(term.String(), "error: interrupted\n") {
				t.Errorf("the end is %q", term)
			}
		})
	}
}
