//go:build e2e

package harness

import (
	"fmt"
	"strings"
	"time"
)

// WriteKeys writes n keys from the client's pod through redirects. Args go to
// valkey-cli, for TLS and a user. Writing a key twice does no harm, so what failed
// is tried again for a while.
func (s *Space) WriteKeys(cluster string, n int, args ...string) {
	s.t.Helper()
	var commands strings.Builder
	for i := range n {
		fmt.Fprintf(&commands, "SET key:%d value:%d\n", i, i)
	}
	s.Eventually(fmt.Sprintf("%d keys are written", n), keysWithin, func() error {
		out, err := s.CLI(commands.String(), append([]string{"-c", "-h", cluster}, args...)...)
		if err != nil {
			return err
		}
		if ok := strings.Count(out, "OK"); ok != n {
			return fmt.Errorf("%d writes succeeded: %.1000s", ok, out)
		}
		return nil
	})
}

// keysWithin is how long a cluster may take to serve all keys after a change. One try
// that meets the address of a pod which just ended takes the whole patience of CLI.
const keysWithin = 3 * time.Minute

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
		return n, fmt.Errorf("%d reads gave %d lines: %.1000s", n, len(lines), out)
	}
	lost := 0
	for i, line := range lines {
		if line != fmt.Sprintf("value:%d", i) {
			lost++
		}
	}
	return lost, nil
}

// WantKeys fails the test unless all n keys that WriteKeys wrote can be read. A key
// that is lost stays lost, so what could not be read is tried again for a while.
func (s *Space) WantKeys(cluster string, n int, args ...string) {
	s.t.Helper()
	s.Eventually(fmt.Sprintf("all %d keys are there", n), keysWithin, func() error {
		lost, err := s.LostKeys(cluster, n, args...)
		if err == nil && lost > 0 {
			err = fmt.Errorf("%d are lost", lost)
		}
		return err
	})
}
