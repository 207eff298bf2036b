// Package password reads a password: from a terminal without showing it, or from
// what is piped in. It is never an argument, which others could see.
package password

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// maxLength bounds what is read. No password is longer; a file given by mistake is.
const maxLength = 64 << 10

// Hidden is a reader that can read a line without showing what is typed. Tests type
// on one.
type Hidden interface {
	output.Sized
	ReadHidden() (string, error)
}

// IsTerminal is whether a person types what is read.
func IsTerminal(in io.Reader) bool {
	switch s := in.(type) {
	case output.Sized:
		_, _, ok := s.TerminalSize()
		return ok
	case *os.File:
		return term.IsTerminal(int(s.Fd()))
	}
	return false
}

// Read reads a password. On a terminal it asks on prompt, without echo; else it
// takes all that is piped in, without the line break at its end. It returns when ctx
// is done, and leaves the terminal as it was.
func Read(ctx context.Context, in io.Reader, prompt io.Writer, question string) (string, error) {
	if !IsTerminal(in) {
		return piped(in)
	}
	if _, err := fmt.Fprint(prompt, question); err != nil {
		return "", err
	}
	typed, err := hidden(ctx, in)
	// The Enter that ended the line was not shown either.
	_, _ = fmt.Fprintln(prompt)
	if err != nil {
		return "", err
	}
	return check(typed)
}

// piped reads one line: what follows it would be a mistake that nobody sees.
func piped(in io.Reader) (string, error) {
	text, err := io.ReadAll(bufio.NewReader(io.LimitReader(in, maxLength+1)))
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if len(text) > maxLength {
		return "", fmt.Errorf("the password is longer than %d bytes: is it the right file?", maxLength)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if strings.ContainsAny(line, "\r\n") {
		return "", errors.New("more than one line was piped in: pipe in the password alone")
	}
	return check(line)
}

func check(password string) (string, error) {
	if password == "" {
		return "", errors.New("the password is empty")
	}
	return password, nil
}

// hidden reads a line of a terminal. A read of a terminal can't be interrupted, so
// it is left behind when ctx is done.
func hidden(ctx context.Context, in io.Reader) (string, error) {
	type answer struct {
		text string
		err  error
	}
	read := make(chan answer, 1)
	switch s := in.(type) {
	case Hidden:
		go func() {
			text, err := s.ReadHidden()
			read <- answer{text, err}
		}()
	case *os.File:
		fd := int(s.Fd())
		before, err := term.GetState(fd)
		if err != nil {
			return "", fmt.Errorf("read the terminal: %w", err)
		}
		go func() {
			text, err := term.ReadPassword(fd)
			read <- answer{string(text), err}
		}()
		defer func() { _ = term.Restore(fd, before) }()
	default:
		return "", errors.New("read the terminal: it can't hide what is typed; pipe the password in")
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-read:
		if a.err != nil {
			return "", fmt.Errorf("read the password: %w", a.err)
		}
		return a.text, nil
	}
}
