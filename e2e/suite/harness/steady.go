//go:build e2e

package harness

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Connections are clients that stay connected to servers while something changes.
type Connections struct {
	s      *Space
	cancel context.CancelFunc
	group  sync.WaitGroup
	mu     sync.Mutex
	out    map[string]string
}

// Connect opens a connection to each pod from the client's pod. It asks the server
// twice a second for its own ID: one that was made anew has another. Args go to
// valkey-cli, for TLS and a user.
func (s *Space) Connect(pods []corev1.Pod, args ...string) *Connections {
	ctx, cancel := context.WithCancel(s.t.Context())
	c := &Connections{s: s, cancel: cancel, out: map[string]string{}}
	for _, pod := range pods {
		c.group.Go(func() {
			argv := append([]string{"valkey-cli", "-h", pod.Status.PodIP}, args...)
			argv = append(argv, "-r", "2000", "-i", "0.5", "CLIENT", "ID")
			out, _ := s.Exec(ctx, s.Name, clientPod, "", argv...) // it ends by being cancelled
			c.mu.Lock()
			defer c.mu.Unlock()
			c.out[pod.Name] = out
		})
	}
	s.t.Cleanup(func() {
		cancel()
		c.group.Wait()
	})
	return c
}

// Steady ends the connections and returns an error unless each was one and the same
// all the time.
func (c *Connections) Steady() error {
	c.cancel()
	c.group.Wait()
	for pod, out := range c.out {
		lines := strings.Fields(out)
		for _, id := range lines {
			if id != lines[0] {
				return fmt.Errorf("the connection to pod %s was lost: %.1000s", pod, out)
			}
		}
		if len(lines) < 4 {
			return fmt.Errorf("the connection to pod %s was never used: %q", pod, out)
		}
	}
	return nil
}
