//go:build e2e

package harness

import (
	"fmt"
	"strings"
)

// WriteKeys writes n keys from the client's pod through redirects. Args go to
// valkey-cli, for TLS and a user.
func (s *Space) WriteKeys(cluster string, n int, args ...string) {
	s.t.Helper()
	var commands strings.Builder
	for i := range n {
		fmt.Fprintf(&commands, "SET key:%d value:%d\n", i, i)
	}
	out, err := s.CLI(commands.String(), append([]string{"-c", "-h", cluster}, args...)...)
	if err != nil {
		s.t.Fatalf("write %d keys: %v", n, err)
	}
	if ok := strings.Count(out, "OK"); ok != n {
		s.t.Fatalf("of %d writes %d succeeded: %.2000s", n, ok, out)
	}
}

// LostKeys reads n keys as WriteKeys wrote them and returns how many are missing or
// wrong.
func (s *Space) LostKeys(cluster string, n int, args ...string) (int, error) {
	var commands strings.Builder
	for i := range n {
		fmt.Fprintf(&commands, "GET key:%d\n", i)
	}
	out, err := s.CLI(commands.String(), append([]string{"-c", "-h", cluster}, args...)...)
	if err != nil {
		return n, fmt.Errorf("read %d keys: %w", n, err)
	}
	var lines []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "-> Redirected") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	if len(lines) != n {
		return n, fmt.Errorf("%d reads gave %d lines: %.2000s", n, len(lines), out)
	}
	lost := 0
	for i, line := range lines {
		if line != fmt.Sprintf("value:%d", i) {
			lost++
		}
	}
	return lost, nil
}

// WantKeys fails the test unless all n keys that WriteKeys wrote can be read.
func (s *Space) WantKeys(cluster string, n int, args ...string) {
	s.t.Helper()
	lost, err := s.LostKeys(cluster, n, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	if lost > 0 {
		s.t.Fatalf("%d of %d keys are lost\n%s", lost, n, s.picture())
	}
}
