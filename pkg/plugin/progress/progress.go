// Package progress shows how far a long wait has come: on a terminal as one line
// that is drawn over, elsewhere as a line for each change.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Reporter shows the progress of one wait. It is for one goroutine.
type Reporter struct {
	w        io.Writer
	terminal output.Terminal
	clock    clock.PassiveClock
	start    time.Time
	text     string
	// line is what stands on a terminal, in so many columns.
	line  string
	drawn int
}

// New starts to count the time. Lines go to w, which terminal describes.
func New(w io.Writer, terminal output.Terminal, clk clock.PassiveClock) *Reporter {
	return &Reporter{w: w, terminal: terminal, clock: clk, start: clk.Now()}
}

// Elapsed is how long the wait has lasted, in whole seconds.
func (r *Reporter) Elapsed() time.Duration {
	return r.clock.Since(r.start).Truncate(time.Second)
}

// Update says how things stand now. Off a terminal nothing is written unless the
// text changed; on one, the time goes on.
func (r *Reporter) Update(text string) {
	if r.terminal.Live() {
		r.text = text
		r.draw()
		return
	}
	if text != r.text {
		r.text = text
		// A stream that can't be written to is no reason to stop waiting.
		_, _ = fmt.Fprintf(r.w, "%s  %s\n", stamp(r.Elapsed()), text)
	}
}

// Done takes the live line away, so that what follows starts on a clean line.
func (r *Reporter) Done() {
	if r.drawn > 0 {
		_, _ = fmt.Fprint(r.w, "\r"+strings.Repeat(" ", r.drawn)+"\r")
		r.line, r.drawn = "", 0
	}
}

// draw writes the line over the former one. Blanks cover what that had more: no
// escape sequence is needed, so it works with NO_COLOR too.
func (r *Reporter) draw() {
	width, _ := r.terminal.Size()
	// The last column stays free; some terminals wrap when it is written to.
	line := output.Shorten(stamp(r.Elapsed())+"  "+r.text, width-1)
	if line == r.line {
		return
	}
	r.line = line
	n := output.Width(line)
	_, _ = fmt.Fprint(r.w, "\r"+line+strings.Repeat(" ", max(0, r.drawn-n)))
	r.drawn = n
}

// stamp keeps the text in one place while the first minutes pass.
func stamp(d time.Duration) string { return fmt.Sprintf("%4s", d) }
