package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

// terminal connects a command in a pod with who called this one.
type terminal interface {
	// serve runs c. With password, valkey-cli waits for one as the first line that
	// it reads; with once it ends by itself.
	serve(ctx context.Context, c *kube.Command, password, once bool, run kube.Runner) error
}

// console is the terminal, or the files, that this process was given.
type console struct {
	streams genericiooptions.IOStreams
	// fd of standard input, -1 if that is no terminal.
	fd int
	// ask reads a line from the terminal without showing it.
	ask func() ([]byte, error)
}

func newTerminal(streams genericiooptions.IOStreams) *console {
	c := &console{streams: streams, fd: -1}
	if file, ok := streams.In.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		c.fd = int(file.Fd())
		c.ask = func() ([]byte, error) { return term.ReadPassword(c.fd) }
	}
	return c
}

func (c *console) serve(ctx context.Context, command *kube.Command, password, once bool, run kube.Runner) error {
	switch {
	case c.ask == nil: // a file or a pipe, which begins with the password
		command.Stdin = c.streams.In
	case once && password:
		line, err := c.askPassword()
		if err != nil {
			return err
		}
		command.Stdin = bytes.NewReader(append(line, '\n'))
	case once: // reads nothing
	default:
		return c.interactive(ctx, command, run)
	}
	return run(ctx, *command)
}

func (c *console) askPassword() ([]byte, error) {
	if _, err := fmt.Fprint(c.streams.ErrOut, "Password: "); err != nil {
		return nil, err
	}
	line, err := c.ask()
	_, _ = fmt.Fprintln(c.streams.ErrOut) // the line that was not shown
	if err != nil {
		return nil, fmt.Errorf("read the password: %w", err)
	}
	return line, nil
}

// interactive hands the terminal over; keys, Ctrl-C among them, go to valkey-cli,
// which also asks for the password.
func (c *console) interactive(ctx context.Context, command *kube.Command, run kube.Runner) error {
	before, err := term.MakeRaw(c.fd)
	if err != nil {
		return fmt.Errorf("set up the terminal: %w", err)
	}
	defer func() { _ = term.Restore(c.fd, before) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command.Stdin = c.streams.In
	command.Sizes = newSizes(ctx, c.streams.Out, c.fd)
	return run(ctx, *command)
}

// sizeInterval is how soon a terminal that was resized shows it. Windows has no
// signal for it, and looking costs nothing.
const sizeInterval = 250 * time.Millisecond

// sizes tells the size of a terminal, at first and after each change.
type sizes struct {
	done <-chan struct{}
	tick *time.Ticker
	size func() (width, height int, err error)
	last remotecommand.TerminalSize
}

func newSizes(ctx context.Context, out io.Writer, fd int) *sizes {
	// Windows knows the size at the output only.
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fd = int(file.Fd())
	}
	return &sizes{done: ctx.Done(), tick: time.NewTicker(sizeInterval), size: func() (int, int, error) { return term.GetSize(fd) }}
}

// Next implements remotecommand.TerminalSizeQueue; nil ends it.
func (s *sizes) Next() *remotecommand.TerminalSize {
	for {
		if width, height, err := s.size(); err == nil {
			if now := (remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}); now != s.last {
				s.last = now
				return &now
			}
		}
		select {
		case <-s.done:
			s.tick.Stop()
			return nil
		case <-s.tick.C:
		}
	}
}
