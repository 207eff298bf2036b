package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/root"
)

// P-06
func TestEveryFailureHasACodeAndOneLine(t *testing.T) {
	sick := plugintest.Active("sick", 1, 1)
	sick.Condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonNodesNotReady, "sick-3fa3f: its pod\nis gone")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
	server := newAPIServer(t, append(append(inNamespace("team-a", sick), plugintest.Menu()...), namespace)...)
	config := "KUBECONFIG=" + kubeconfig(t, server.config("{token: t}"))
	tests := []struct {
		name string
		env  string
		args []string
		code int
	}{
		{"not found", config, []string{"status", "nope"}, 1},
		{"an unhealthy cluster", config, []string{"status", "sick"}, 1},
		{"an unhealthy cluster, as JSON", config, []string{"status", "sick", "-o", "json"}, 1},
		{"unreachable", config, []string{"status", "--server", "http://127.0.0.1:1"}, 1},
		{"no kubeconfig", "KUBECONFIG=/nowhere", []string{"status"}, 1},
		{"a kubeconfig that doesn't exist", config, []string{"status", "--kubeconfig", "/nowhere"}, 1},
		{"a kubeconfig that is none", config, []string{"status", "--kubeconfig", kubeconfig(t, "{{{")}, 1},
		{"a context that doesn't exist", config, []string{"status", "--context", "nope"}, 1},
		{"a config that doesn't exist", config, []string{"create", "x", "--config", "nope", "--shards", "1", "--replicas", "0", "--dry-run=server"}, 1},
		{"an unknown flag", config, []string{"status", "--nope"}, 2},
		{"an unknown command", config, []string{"statsu"}, 2},
		{"an unknown shell", config, []string{"completion", "tcsh"}, 2},
		{"a name and all namespaces", config, []string{"status", "sick", "-A"}, 2},
		{"a value that is no number", config, []string{"create", "x", "--shards", "many"}, 2},
		{"a name that is too long", config, []string{"create", strings.Repeat("x", 54), "--config", "c", "--shards", "1", "--replicas", "0"}, 2},
		{"an empty name", config, []string{"status", ""}, 2},
		{"an empty name before what is for another program", config, []string{"cli", "", "--", "GET", ""}, 2},
		{"policies for what can't be a cluster", config, []string{"networkpolicy", "../x"}, 2},
		{"no name for policies", config, []string{"networkpolicy", ""}, 2},
		{"a certificate for what can't be a cluster", config, []string{"certificate", "My_Cluster"}, 2},
		{"a certificate for a name that is too long", config, []string{"certificate", strings.Repeat("x", 54)}, 2},
		{"no name", config, []string{"create", "--config", "c"}, 2},
		{"too much", config, []string{"version", "now"}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantOneLine(t, run(t, []string{tt.env}, tt.args...), tt.code)
		})
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"help", "create"}, {"create", "-h"}, {"options"}, {"version", "--client"}} {
		if r := run(t, []string{"KUBECONFIG=/nowhere"}, args...); r.code != 0 || r.stdout == "" || r.stderr != "" {
			t.Errorf("%v: exit %d, stderr %q", args, r.code, r.stderr)
		}
	}
}

func TestASuggestionIsMadeForAMistypedCommand(t *testing.T) {
	r := run(t, nil, "stauts")
	if want := "error: unknown command \"stauts\"; did you mean status? See kubectl valkey --help\n"; r.stderr != want {
		t.Errorf("stderr = %q, want %q", r.stderr, want)
	}
}

// P-02
func TestNoTextPutsFlagsBeforeThePluginsName(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "kubectl -") {
			t.Errorf("%s: kubectl takes no flags before a plugin's name", page)
		}
	}
	visit(rootCommand(), func(c *cobra.Command) {
		for _, text := range []string{c.Long, c.Example, c.Short, c.Use} {
			for line := range strings.Lines(text) {
				if strings.Contains(line, "kubectl -") {
					t.Errorf("%s: %q: kubectl takes no flags before a plugin's name", c.CommandPath(), line)
				}
			}
		}
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, "kubectl") && !strings.HasPrefix(line, "#") && !strings.Contains(line, "kubectl valkey ") && !strings.HasPrefix(line, "kubectl wait ") && !strings.Contains(line, "kubectl_complete-valkey") {
				t.Errorf("%s: %q is no command of the plugin", c.CommandPath(), line)
			}
		}
	})
}

// P-02
func TestEveryExampleParses(t *testing.T) {
	visit(rootCommand(), func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			line, ok := strings.CutPrefix(strings.TrimSpace(line), "kubectl valkey ")
			if !ok {
				continue
			}
			// What the shell does with it is the shell's.
			if at := strings.IndexAny(line, "<>|"); at >= 0 {
				line = line[:at]
			}
			words := strings.Fields(line)
			found, rest, err := rootCommand().Find(words)
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
}

func TestEveryCommandExplainsItself(t *testing.T) {
	visit(rootCommand(), func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s has no short help, long help or example", c.CommandPath())
		}
	})
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell", "shim"} {
		r := run(t, nil, "completion", shell)
		if r.code != 0 || r.stderr != "" || !strings.Contains(r.stdout, "kubectl-valkey") {
			t.Errorf("%s: exit %d, stderr %q, %d bytes", shell, r.code, r.stderr, len(r.stdout))
		}
	}
}

func TestNamesAreCompleted(t *testing.T) {
	server := newAPIServer(t, append(inNamespace("team-a", plugintest.Active("demo", 1, 0)), plugintest.Menu()...)...)
	env := []string{"KUBECONFIG=" + kubeconfig(t, server.config("{token: t}"))}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"status", ""}, "demo"},
		{[]string{"status", "-n", "team-b", ""}, ""},
		{[]string{"status", "demo", ""}, ""},
		{[]string{"create", "x", "--config", ""}, "old standard"},
		{[]string{"create", "x", "--config", "st"}, "standard"},
		{[]string{"status", "--context", ""}, "c1"},
		{[]string{"status", "-o", ""}, "json yaml wide"},
		{[]string{"status", "--color", ""}, "auto always never"},
		{[]string{"create", "x", "--dry-run", ""}, "none server client"},
	} {
		r := run(t, env, append([]string{"__completeNoDesc"}, tt.args...)...)
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		if got := strings.Join(lines[:len(lines)-1], " "); !sameWords(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.args, got, tt.want)
		}
	}
	// An unreachable server must not hold up a shell, nor write into it.
	r := run(t, []string{"KUBECONFIG=" + kubeconfig(t, strings.Replace(server.config("{}"), server.URL, "http://127.0.0.1:1", 1))}, "__completeNoDesc", "status", "")
	if r.code != 0 || r.stdout != ":4\n" {
		t.Errorf("unreachable: exit %d with %q", r.code, r.stdout)
	}
}

func sameWords(a, b string) bool {
	count := map[string]int{}
	for _, w := range strings.Fields(a) {
		count[w]++
	}
	for _, w := range strings.Fields(b) {
		count[w]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func rootCommand() *cobra.Command {
	return root.New(root.Surroundings{
		Streams: genericiooptions.NewTestIOStreamsDiscard(), Clock: clock.RealClock{}, Getenv: func(string) string { return "" },
	})
}

func visit(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, child := range c.Commands() {
		visit(child, f)
	}
}
