package acknowledge

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// isTerminal reports whether a person types what is read.
func isTerminal(r io.Reader) bool {
	switch in := r.(type) {
	case output.Sized:
		_, _, ok := in.TerminalSize()
		return ok
	case *os.File:
		return term.IsTerminal(int(in.Fd()))
	}
	return false
}

// readLine reads one line, or until ctx is done: a read of a terminal can't be
// interrupted, so it is left behind.
func readLine(ctx context.Context, r io.Reader) (string, error) {
	type answer struct {
		text string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		text, err := bufio.NewReader(r).ReadString('\n')
		if err == io.EOF && text != "" {
			err = nil
		}
		read <- answer{strings.TrimSpace(text), err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-read:
		return a.text, a.err
	}
}
