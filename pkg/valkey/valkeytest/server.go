// Package valkeytest starts real servers for tests.
package valkeytest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Program finds a program of Valkey among those of the API-server tier, or on the
// PATH.
func Program(t *testing.T, name string) string {
	t.Helper()
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		file := filepath.Join(assets, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file
		}
	}
	file, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("no %s in KUBEBUILDER_ASSETS or PATH: run make test-api, which builds it (%v)", name, err)
	}
	return file
}

// Loopback is an address that no other process uses: nodes always meet at the same
// port, so each needs an address of its own. N is below 256 and tells those of one
// process apart.
func Loopback(n int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>8&63, pid&255, n)
}

// Start starts a server with its arguments, and ends it with the test. What it prints
// goes to the file output unless that is "".
func Start(t *testing.T, output string, args ...string) *os.Process {
	t.Helper()
	cmd := exec.Command(Program(t, "valkey-server"), args...)
	if output != "" {
		file, err := os.Create(output)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		cmd.Stdout, cmd.Stderr = file, file
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start valkey-server: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process
}

// Eventually asks until there is no error, for half a minute.
func Eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited for: %s: %v", what, err)
		}
	}
}
