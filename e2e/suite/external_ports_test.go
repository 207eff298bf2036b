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

// landings note which nodes the connections to one port outside led to.
type landings struct {
	shard, index int32

	mu sync.Mutex
	// ids are how often each node answered, refused is how often none did.
	ids     map[string]int
	refused int
	// answered is when the last answer came, longest the time between two of them.
	answered time.Time
	longest  time.Duration
}

// refusedAtMost is what a handover may cost at a port: ten times what is expected, as
// other tests run at the same time. docs/performance.md has what was measured.
const refusedAtMost = 20 * time.Second

// watchPort asks who answers at a port until ctx is done: over a connection of its own
// each time, that waits for no other, as one that gets no answer takes a second.
func (l *landings) watchPort(ctx context.Context, machine string, port int32) {
	l.ids, l.answered = map[string]int{}, time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			group.Go(func() { l.knock(ctx, machine, port) })
		}
	}
}

func (l *landings) knock(ctx context.Context, machine string, port int32) {
	id, err := whoAnswers(ctx, machine, port)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		now := time.Now()
		l.ids[id]++
		l.longest = max(l.longest, now.Sub(l.answered))
		l.answered = now
	case ctx.Err() == nil:
		l.refused++
	}
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
// port is refused or lands on a node of that shard and index, and is refused for no
// longer than a handover; at rest it lands on the node that stands there.
func TestAPortOutsideLeadsToNoOtherNode(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int32{0, 1} {
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t).Space(t, 6)
			c := s.Cluster("c", 2, replicas)
			ownConfig(s, c)
			c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true}
			s.Create(c)
			c = waitOutside(s)
			machine := s.Machine()
			leadsHome(t, s, machine, c)

			watched, stop := watchPorts(t, machine, c)
			places := map[string][2]int32{} // of every node that there was, by its ID
			settled := func() error {
				for _, n := range s.Nodes("c") {
					if n.Status.NodeID != "" {
						places[n.Status.NodeID] = [2]int32{n.Spec.ShardIndex, n.Spec.NodeIndex}
					}
				}
				return harness.Settled(s.Get("c"))
			}
			before := podUIDs(s)
			change(s, func(spec *v1alpha1.ValkeyConfigSpec) {
				memory := resource.MustParse("96Mi")
				spec.Resources = &v1alpha1.Resources{Memory: &memory}
			})
			s.Eventually("every pod is replaced", 4*time.Minute, func() error {
				if err := settled(); err != nil {
					return err
				}
				for name := range podUIDs(s) {
					if _, old := before[name]; old {
						return fmt.Errorf("%s is left: %s", name, s.Get("c").Status.Message)
					}
				}
				return nil
			})
			for shard := range c.Spec.Shards * min(replicas, 1) {
				if r := s.Valkey("failover", "c", "--shard", fmt.Sprint(shard)); r.Code != 0 {
					t.Error(r)
				}
				s.Eventually("the shard is handed over", 2*time.Minute, settled)
			}
			after := waitOutside(s)
			stop()
			for port, l := range watched {
				if now := after.Status.ExternalEndpoints[l.shard].Ports[l.index]; now != port {
					t.Errorf("port %d of shard %d became %d", port, l.shard, now)
				}
				l.check(t, port, places)
			}
			leadsHome(t, s, machine, after)
		})
	}
}

// watchPorts watches every port of a cluster until the returned function is called.
func watchPorts(t *testing.T, machine string, c *v1alpha1.ValkeyCluster) (map[int32]*landings, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	out := map[int32]*landings{}
	for shard, e := range c.Status.ExternalEndpoints {
		for index, port := range e.Ports {
			l := &landings{shard: int32(shard), index: int32(index)}
			out[port] = l
			group.Go(func() { l.watchPort(ctx, machine, port) })
		}
	}
	return out, func() {
		cancel()
		group.Wait()
	}
}

// check says what is wrong with where the connections to a port led.
func (l *landings) check(t *testing.T, port int32, places map[string][2]int32) {
	t.Helper()
	tried := l.refused
	for id, times := range l.ids {
		tried += times
		at, known := places[id]
		switch {
		case !known:
			t.Errorf("%d connections to port %d landed on %.8s, which nobody knows", times, port, id)
		case at != [2]int32{l.shard, l.index}:
			t.Errorf("%d connections to the port of shard %d, node %d landed on shard %d, node %d", times, l.shard, l.index, at[0], at[1])
		}
	}
	if tried < 100 || len(l.ids) < 2 {
		t.Errorf("%d connections to port %d landed on %d nodes, want 100 on the old one and the new", tried, port, len(l.ids))
	}
	if l.longest > refusedAtMost {
		t.Errorf("nobody answered at port %d for %s", port, l.longest)
	}
	t.Logf("shard %d, node %d: %d of %d connections were refused; nobody answered for %s at most", l.shard, l.index, l.refused, tried, l.longest.Round(time.Millisecond))
}

// leadsHome checks that every port leads to the node that stands there, each time.
func leadsHome(t *testing.T, s *harness.Space, machine string, c *v1alpha1.ValkeyCluster) {
	t.Helper()
	for _, n := range s.Nodes("c") {
		port := c.Status.ExternalEndpoints[n.Spec.ShardIndex].Ports[n.Spec.NodeIndex]
		s.Eventually(fmt.Sprintf("port %d leads to node %s", port, n.Name), 20*time.Second, func() error {
			for range 20 {
				id, err := whoAnswers(t.Context(), machine, port)
				if err != nil || id != n.Status.NodeID {
					return fmt.Errorf("%.8s answers, want %.8s: %w", id, n.Status.NodeID, err)
				}
			}
			return nil
		})
	}
}
