// Package exit holds the exit codes of kubectl-valkey and the errors that lead to
// them. A command returns an error; only Report turns it into text and a code, so
// a failure is never silent and never more than one line a problem.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Exit codes, as documented for users.
const (
	// OK: done, or the cluster is healthy.
	OK = 0
	// Failed: it could not be done, or the cluster is not healthy.
	Failed = 1
	// Usage: the command line is wrong; nothing was tried.
	Usage = 2
	// TimedOut: what was waited for did not come in time.
	TimedOut = 124
	// Interrupted: Ctrl-C or SIGTERM.
	Interrupted = 130
)

// coded is an error with an exit code of its own.
type coded struct {
	code int
	err  error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// Usagef reports a wrong command line (exit code 2).
func Usagef(format string, args ...any) error {
	return &coded{code: Usage, err: fmt.Errorf(format, args...)}
}

// UsageError marks err, if there is one, as a wrong command line.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return &coded{code: Usage, err: err}
}

// Timeoutf reports that waiting took too long (exit code 124).
func Timeoutf(format string, args ...any) error {
	return &coded{code: TimedOut, err: fmt.Errorf(format, args...)}
}

// Interruptedf reports what an interrupt leaves behind (exit code 130).
func Interruptedf(format string, args ...any) error {
	return &coded{code: Interrupted, err: fmt.Errorf(format, args...)}
}

// Code is the exit code that err leads to. A bare context cancellation can only
// come from an interrupt: time limits carry their own error.
func Code(err error) int {
	if err == nil {
		return OK
	}
	var c *coded
	if errors.As(err, &c) {
		return c.code
	}
	if errors.Is(err, context.Canceled) {
		return Interrupted
	}
	return Failed
}

// Report writes err to w, one line beginning "error: " for each problem in it,
// and returns its exit code.
func Report(w io.Writer, err error) int {
	code := Code(err)
	if err == nil {
		return code
	}
	var c *coded
	if code == Interrupted && !errors.As(err, &c) {
		// What was under way at that moment is of no interest.
		err = errors.New("interrupted")
	}
	for _, problem := range problems(err) {
		// When stderr itself is gone the exit code still tells.
		_, _ = fmt.Fprintln(w, "error: "+OneLine(problem.Error()))
	}
	return code
}

// problems takes an errors.Join apart. An error with a sentence of its own
// around the joined ones stays whole.
func problems(err error) []error {
	switch e := err.(type) { //nolint:errorlint // only the outermost error may be opened
	case *coded:
		return problems(e.err)
	case interface{ Unwrap() []error }:
		var all []error
		var text []string
		for _, inner := range e.Unwrap() {
			all = append(all, problems(inner)...)
			text = append(text, inner.Error())
		}
		if err.Error() == strings.Join(text, "\n") {
			return all
		}
	}
	return []error{err}
}

// OneLine folds text of several lines, as API servers and credential plugins
// send it, into one.
func OneLine(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, " ")
}
