package main

import (
	"context"
	"strings"
	"testing"
)

func TestCommandLineCanBeTyped(t *testing.T) {
	tests := map[string][]string{
		"kubectl valkey status demo":                           {"kubectl", "valkey", "status", "demo"},
		`kubectl wait '--for=jsonpath={.status}' pod/a`:        {"kubectl", "wait", "--for=jsonpath={.status}", "pod/a"},
		`sh -c 'echo it'\''s' ''`:                              {"sh", "-c", "echo it's", ""},
		"kubectl apply -f dist/demo/install.yaml --timeout=5m": {"kubectl", "apply", "-f", "dist/demo/install.yaml", "--timeout=5m"},
	}
	for want, words := range tests {
		if got := commandLine(words[0], words[1:]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAFailedCommandIsNamedWithWhatItSaid(t *testing.T) {
	s := &shell{out: &strings.Builder{}, err: &strings.Builder{}}
	_, err := s.capture(context.Background(), "sh", "-c", "echo no such thing >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("got %v", err)
	}
}

func TestShowPrintsTheCommandBeforeItsOutput(t *testing.T) {
	var out strings.Builder
	s := &shell{out: &out, err: &out}
	if err := s.show(context.Background(), "echo", "hello"); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "\n$ echo hello\nhello\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
