// Package output is how commands show things: tables, colours, JSON and YAML,
// and what they know of the terminal that they draw on.
package output

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Sized is a stream that knows the size of its terminal, in characters; ok is
// false when it is none. Tests show commands a terminal through it.
type Sized interface {
	TerminalSize() (width, height int, ok bool)
}

// Terminal says what can be drawn on a stream.
type Terminal struct {
	size    func() (width, height int, ok bool)
	escapes bool
	dumb    bool
}

// TerminalOf looks at what w is and, for NO_COLOR and TERM, at the environment.
func TerminalOf(w io.Writer, getenv func(string) string) Terminal {
	t := Terminal{size: func() (int, int, bool) { return 0, 0, false }}
	switch s := w.(type) {
	case Sized:
		t.size = s.TerminalSize
	case *os.File:
		t.size = func() (int, int, bool) {
			width, height, err := term.GetSize(int(s.Fd()))
			return width, height, err == nil
		}
	}
	t.dumb = getenv("TERM") == "dumb"
	t.escapes = t.IsTerminal() && getenv("NO_COLOR") == "" && !t.dumb
	return t
}

// IsTerminal is whether a person looks at the stream rather than a program.
func (t Terminal) IsTerminal() bool {
	_, _, ok := t.size()
	return ok
}

// Live is whether a line can be drawn over by a carriage return, which needs no
// escape sequence.
func (t Terminal) Live() bool { return t.IsTerminal() && !t.dumb }

// Escapes is whether escape sequences, be it for colour or to move the cursor,
// are understood and wanted.
func (t Terminal) Escapes() bool { return t.escapes }

// Size of the terminal in characters at this moment; a terminal that doesn't
// know, and no terminal at all, count as 80 by 24.
func (t Terminal) Size() (width, height int) {
	width, height, ok := t.size()
	if !ok || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
