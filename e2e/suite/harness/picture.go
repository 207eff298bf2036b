//go:build e2e

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// picture shows a namespace in brief, for the message of a failure.
func (s *Space) picture() string {
	ctx := context.WithoutCancel(s.t.Context())
	var b strings.Builder
	for _, args := range [][]string{
		{"get", "valkeyclusters", "-o", "yaml"},
		{"get", "valkeynodes,pods", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
	} {
		r := s.RunKubectl(ctx, "", append(args, "-n", s.Name)...)
		b.WriteString(tail(r.String(), 12000) + "\n")
	}
	return b.String()
}

// tail is the end of a text that is too long to show.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "…" + text[len(text)-most:]
}

// save writes what a namespace holds, and what its pods said, into the logs.
// Secrets are left out.
func (s *Space) save(ctx context.Context) error {
	return s.saveNamespace(ctx, s.Name, strings.NewReplacer("/", "_", " ", "_").Replace(s.t.Name()))
}

// saveState writes what the manager's namespace holds into the logs.
func (e *Env) saveState(ctx context.Context) error {
	return e.saveNamespace(ctx, ManagerNamespace, "manager")
}

func (e *Env) saveNamespace(ctx context.Context, namespace, folder string) error {
	dir := filepath.Join(e.Logs, folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a directory of logs: %w", err)
	}
	files := map[string][]string{
		"objects.yaml": {"get", "valkeyclusters,valkeynodes,pods,configmaps,services,endpointslices,poddisruptionbudgets,leases", "-o", "yaml"},
		"pods.txt":     {"describe", "pods"},
		"events.txt":   {"get", "events", "--sort-by=.lastTimestamp", "-o", "wide"},
	}
	var errs []error
	for name, args := range files {
		r := e.RunKubectl(ctx, "", append(args, "-n", namespace)...)
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(r.Stdout+r.Stderr), 0o644))
	}
	names := e.RunKubectl(ctx, "", "get", "pods", "-o", "name", "-n", namespace)
	for _, pod := range strings.Fields(names.Stdout) {
		r := e.RunKubectl(ctx, "", "logs", pod, "-n", namespace)
		file := strings.ReplaceAll(pod, "/", "-") + ".log"
		errs = append(errs, os.WriteFile(filepath.Join(dir, file), []byte(r.Stdout+r.Stderr), 0o644))
	}
	return errors.Join(errs...)
}
