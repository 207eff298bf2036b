package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Escape sequences of every terminal since the VT100.
const (
	clearScreen = "\x1b[2J"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// view shows one state of things after the other: drawn over the former on a
// terminal, appended elsewhere.
type view struct {
	options  *Options
	terminal output.Terminal
	// trouble is why what is shown may be old.
	trouble error

	shown bool
	// last is what an appended view showed, without ages.
	last string
}

func newView(o *Options) *view {
	return &view{options: o, terminal: o.flags.Terminal(o.streams.Out)}
}

func (v *view) show(seen sight, now time.Time) error {
	if v.terminal.Escapes() && v.options.data() == output.Text {
		return v.draw(seen, now)
	}
	return v.append(seen, now)
}

// draw writes over what stands on the screen, line by line, which doesn't
// flicker.
func (v *view) draw(seen sight, now time.Time) error {
	text, err := v.text(seen, now)
	if err != nil {
		return err
	}
	if v.trouble != nil {
		text += v.options.flags.Palette(v.options.streams.Out).Bad("Not current:") + " " + output.Clean(v.trouble.Error()) + "; trying again\n"
	}
	width, height := v.terminal.Size()
	frame := goHome + fit(text, width, height-1) + clearBelow
	if !v.shown {
		frame = clearScreen + frame
	}
	v.shown = true
	_, err = fmt.Fprint(v.options.streams.Out, frame)
	return err
}

// fit cuts text to the window, so that a line is a line, and says so when lines are
// missing. What a reader wants most stands first.
func fit(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if hidden := len(lines) - height; hidden > 0 && height > 1 {
		lines = append(lines[:height-1:height-1], fmt.Sprintf("… %s more: enlarge the window, or leave out -w", output.Plural(hidden+1, "line")))
	}
	for i, line := range lines {
		lines[i] = output.Shorten(line, width)
	}
	return strings.Join(lines, clearLine+"\n") + clearLine + "\n"
}

// append adds what is new below the former, with the time above it.
func (v *view) append(seen sight, now time.Time) error {
	if v.trouble != nil {
		return v.warn()
	}
	text, err := v.text(seen, now)
	if err != nil {
		return err
	}
	// Ages are no news, so JSON, which has none, tells.
	news, err := output.Data(output.JSON, v.options.content(seen, now))
	if err != nil || news == v.last {
		return err
	}
	if v.options.data() == output.Text {
		text = "--- " + now.UTC().Format(time.RFC3339) + "\n" + text
		if v.shown {
			text = "\n" + text
		}
	}
	if v.shown && v.options.data() == output.YAML {
		text = "---\n" + text
	}
	v.shown, v.last = true, news
	_, err = fmt.Fprint(v.options.streams.Out, text)
	return err
}

// warn says once on stderr that what was shown may be old.
func (v *view) warn() error {
	text := "warning: " + output.Clean(v.trouble.Error()) + "; trying again"
	if v.last == text {
		return nil
	}
	v.last = text
	_, err := fmt.Fprintln(v.options.streams.ErrOut, text)
	return err
}

func (v *view) text(seen sight, now time.Time) (string, error) {
	if seen.empty() && v.options.data() == output.Text {
		return v.options.none() + "\n", nil
	}
	return v.options.text(seen, now)
}
