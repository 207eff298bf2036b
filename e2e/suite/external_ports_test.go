//go:build e2e

package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// landings note, for each port outside, which nodes connections to it led to.
type landings struct {
	mu sync.Mutex
	// ids by port, and how often a connection was refused.
	ids     map[int32]map[string]int
	refused int
}

// knock asks who answers at a port, over a connection of its own.
func (l *landings) knock(ctx context.Context, machine string, port int32) {
	id, err := whoAnswers(ctx, machine, port)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.refused++
		return
	}
	if l.ids[port] == nil {
		l.ids[port] = map[string]int{}
	}
	l.ids[port][id]++
}

func whoAnswers(ctx context.Context, machine string, port int32) (string, error) {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(machine, fmt.Sprint(port)))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "CLUSTER MYID\r\nQUIT\r\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	lines := strings.Split(string(answer), "\r\n")
	if len(lines) < 2 || len(lines[1]) != 40 {
		return "", errors.Join(err, fmt.Errorf("answered %q", answer))
	}
	return lines[1], nil
}

// E-06, S1-23, S1-24, S1-123: while nodes are replaced and hand over, a connection to a
// port is refused or lands on a node of that shard and index; at rest on the one that
// stands there.
func TestAPortOutsideLeadsToNoOtherNode(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 6)
	c := s.Cluster("c", 2, 1)
	ownConfig(s, c)
	c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true}
	s.Create(c)
	c = waitOutside(s)
	o := s.Outside(nil)
	leadsHome(t, s, o, c)

	l := &landings{ids: map[int32]map[string]int{}}
	places := map[string][2]int32{}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, e := range c.Status.ExternalEndpoints {
		for _, port := range e.Ports {
			group.Go(func() {
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
						l.knock(ctx, o.Machine, port)
					}
				}
			})
		}
	}
	before := podUIDs(s)
	change(s, func(spec *v1alpha1.ValkeyConfigSpec) {
		memory := resource.MustParse("96Mi")
		spec.Resources = &v1alpha1.Resources{Memory: &memory}
	})
	s.Eventually("every pod is replaced", 4*time.Minute, func() error {
		for _, n := range s.Nodes("c") {
			if n.Status.NodeID != "" {
				places[n.Status.NodeID] = [2]int32{n.Spec.ShardIndex, n.Spec.NodeIndex}
			}
		}
		for name := range podUIDs(s) {
			if _, old := before[name]; old {
				return fmt.Errorf("%s is left: %s", name, s.Get("c").Status.Message)
			}
		}
		return nil
	})
	after := waitOutside(s)
	stop()
	group.Wait()
	landed := 0
	for shard, e := range after.Status.ExternalEndpoints {
		for index, port := range e.Ports {
			if was := c.Status.ExternalEndpoints[shard].Ports[index]; was != port {
				t.Errorf("port %d of shard %d became %d", was, shard, port)
			}
			for id, times := range l.ids[port] {
				landed += times
				if at, known := places[id]; known && at != [2]int32{int32(shard), int32(index)} {
					t.Errorf("%d connections to the port of shard %d, node %d landed on shard %d, node %d", times, shard, index, at[0], at[1])
				}
			}
		}
	}
	if landed < 100 {
		t.Errorf("only %d connections landed", landed)
	}
	t.Logf("%d connections landed, %d were refused", landed, l.refused)
	leadsHome(t, s, o, after)
}

// leadsHome checks that every port leads to the node that stands there, each time.
func leadsHome(t *testing.T, s *harness.Space, o *harness.Outside, c *v1alpha1.ValkeyCluster) {
	t.Helper()
	for _, n := range s.Nodes("c") {
		port := c.Status.ExternalEndpoints[n.Spec.ShardIndex].Ports[n.Spec.NodeIndex]
		s.Eventually(fmt.Sprintf("port %d leads to node %s", port, n.Name), 20*time.Second, func() error {
			for range 20 {
				id, err := whoAnswers(t.Context(), o.Machine, port)
				if err != nil || id != n.Status.NodeID {
					return fmt.Errorf("%.8s answers, want %.8s: %w", id, n.Status.NodeID, err)
				}
			}
			return nil
		})
	}
}
