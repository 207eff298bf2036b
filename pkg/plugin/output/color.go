package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

var colorModes = []string{ColorAuto, ColorAlways, ColorNever}

// Flags are the flags about how things look that every command has.
type Flags struct {
	color  string
	getenv func(string) string
}

// NewFlags returns the flags with their defaults. getenv is os.Getenv outside
// tests.
func NewFlags(getenv func(string) string) *Flags {
	return &Flags{color: ColorAuto, getenv: getenv}
}

// AddFlags binds the flags to a command and all below it.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().Var((*colorValue)(&f.color), "color",
		"When to use colours: auto (on a terminal, unless NO_COLOR is set), always or never.")
	// A flag that was just defined can be completed.
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colorModes, cobra.ShellCompDirectiveNoFileComp))
}

// Terminal tells what can be drawn on w.
func (f *Flags) Terminal(w io.Writer) Terminal {
	t := TerminalOf(w, f.getenv)
	if f.color == ColorNever {
		t.escapes = false
	}
	return t
}

// Palette returns the colours to use on w.
func (f *Flags) Palette(w io.Writer) Palette {
	return Palette{on: f.color == ColorAlways || f.Terminal(w).Escapes()}
}

// colorValue refuses everything but the three modes when flags are parsed.
type colorValue string

var _ pflag.Value = (*colorValue)(nil)

func (c *colorValue) String() string { return string(*c) }
func (c *colorValue) Type() string   { return "string" }
func (c *colorValue) Set(s string) error {
	for _, m := range colorModes {
		if s == m {
			*c = colorValue(s)
			return nil
		}
	}
	return fmt.Errorf("must be one of %s", strings.Join(colorModes, ", "))
}

// Palette colours words by meaning. Its zero value leaves them as they are.
type Palette struct{ on bool }

// NewPalette returns a palette that colours, or doesn't.
func NewPalette(on bool) Palette { return Palette{on: on} }

// Enabled is whether the palette colours at all.
func (p Palette) Enabled() bool { return p.on }

// Good is for what is as wished.
func (p Palette) Good(s string) string { return p.paint("32", s) }

// Warn is for what is on its way, or deserves a look.
func (p Palette) Warn(s string) string { return p.paint("33", s) }

// Bad is for what is broken.
func (p Palette) Bad(s string) string { return p.paint("31", s) }

// Title is for headings.
func (p Palette) Title(s string) string { return p.paint("1", s) }

// Dim is for what is there for completeness.
func (p Palette) Dim(s string) string { return p.paint("2", s) }

func (p Palette) paint(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
