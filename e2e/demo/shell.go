package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// grace is how long an interrupted command gets to clean up.
const grace = 30 * time.Second

// shell runs commands as a person would, and shows each before it runs.
type shell struct {
	out, err io.Writer
	// env is added to this process's environment; the last of two values holds.
	env []string
}

// show prints a command and runs it with its output going to the person.
func (s *shell) show(ctx context.Context, name string, args ...string) error {
	fmt.Fprintf(s.out, "\n$ %s\n", commandLine(name, args))
	cmd := s.command(ctx, name, args)
	cmd.Stdout, cmd.Stderr = s.out, s.err
	return failure(cmd.Run(), name, args, "")
}

// capture runs a command quietly and returns what it prints.
func (s *shell) capture(ctx context.Context, name string, args ...string) (string, error) {
	cmd := s.command(ctx, name, args)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return out.String(), failure(err, name, args, strings.TrimSpace(errs.String()))
}

func (s *shell) command(ctx context.Context, name string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), s.env...)
	// As Ctrl-C does, so that what runs can clean up.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	return cmd
}

func failure(err error, name string, args []string, detail string) error {
	if err == nil {
		return nil
	}
	if detail != "" {
		detail = ": " + detail
	}
	return fmt.Errorf("%s: %w%s", commandLine(name, args), err, detail)
}

// commandLine writes a command as it can be typed.
func commandLine(name string, args []string) string {
	words := append([]string{name}, args...)
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n'\"$`\\|&;<>()*?[]{}#~!") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
