//go:build e2e

package suite

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// keysOutside is how many keys each client writes before anything happens.
const keysOutside = 10000

// clients are applications on one machine outside, each with a client of its own make.
type clients struct {
	t *testing.T
	s *harness.Space
	o *harness.Outside
	// writers by the name of their make.
	writers map[string]*harness.Writer
	cli     *cliReader
}

// startClients has each client write its keys, and go on.
func startClients(t *testing.T, s *harness.Space, o *harness.Outside, c *v1alpha1.ValkeyCluster) *clients {
	t.Helper()
	ways := addresses(c)
	keys := strconv.Itoa(keysOutside)
	out := &clients{t: t, s: s, o: o, writers: map[string]*harness.Writer{
		"valkey-go": o.StartWriter(ways[0], "--prefix", "go", "--preload", keys, "--clients", "2", "--every", "10ms", patient),
	}}
	if w := o.StartNodeClient(ways[len(ways)-1], "--prefix", "js", "--preload", keys, "--every", "10"); w != nil {
		out.writers["iovalkey"] = w
	}
	out.cli = &cliReader{o: o, start: ways[1]}
	out.cli.write(t)
	return out
}

// during does something while the clients run, until the cluster is settled and each
// client has got something done.
func (c *clients) during(what string, do func()) {
	c.t.Helper()
	for _, w := range c.writers {
		w.Mark(what)
	}
	began := time.Now()
	reading := c.cli.readOn(c.t.Context())
	do()
	waitOutside(c.s, "clients are directed to the outside names")
	batches, err := reading()
	if err != nil {
		c.t.Errorf("%s: %v", what, err)
	}
	c.t.Logf("%s: %s, in which valkey-cli read %d times %d keys", what, time.Since(began).Round(100*time.Millisecond), batches, cliBatch)
}

// wasReset is how clients say that the other end of a connection was gone.
var wasReset = regexp.MustCompile(`reset by peer|broken pipe|EOF|ECONNRESET|EPIPE`)

// stop ends the clients, and checks that each has all that it was promised.
func (c *clients) stop(ways []string) {
	c.t.Helper()
	for name, w := range c.writers {
		r := w.Stop()
		w.WantNothingLost(r, true)
		// A write that is under way when a server ends is reset, and the client leaves it
		// to its caller: the port leads an old connection to the old server until then.
		const resets = 20
		failed, texts := r.Failed()
		if failed > resets || slices.ContainsFunc(texts, func(text string) bool { return !wasReset.MatchString(text) }) {
			c.t.Errorf("%s: %d operations failed: %s", name, failed, strings.Join(texts, "; "))
		}
		for _, window := range r.Windows {
			c.t.Logf("%s, %s: %d writes, %d failed, longest gap %.0f ms, slowest %.0f ms", name, window.Name, window.Writes, window.Failed, window.Gap(), window.WorstMs)
			if window.Writes == 0 {
				c.t.Errorf("%s wrote nothing during %s", name, window.Name)
			}
		}
	}
	c.cli.finish(c.t, ways)
}

// cliReader is somebody with valkey-cli -c.
type cliReader struct {
	o *harness.Outside
	// start is the address that it is given.
	start string

	mu sync.Mutex
	// led are the addresses that it was redirected to.
	led map[string]int
}

// cliBatch is how many keys are read by one valkey-cli.
const cliBatch = 100

func cliKey(i int) string { return fmt.Sprintf("cli:%d", i) }

// run gives commands to one valkey-cli, and returns the replies to them. It notes where
// it is led to.
func (r *cliReader) run(ctx context.Context, commands []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	host, port, err := net.SplitHostPort(r.start)
	if err != nil {
		return nil, err
	}
	out, err := r.o.CLI(ctx, strings.Join(commands, "\n")+"\n", "-c", "-h", host, "-p", port)
	if err != nil {
		return nil, err
	}
	var replies []string
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if _, to, ok := strings.Cut(line, "located at "); ok {
			if r.led == nil {
				r.led = map[string]int{}
			}
			r.led[to]++
			continue
		}
		replies = append(replies, line)
	}
	if len(replies) != len(commands) {
		return nil, fmt.Errorf("%d commands had %d replies: %.1000s", len(commands), len(replies), out)
	}
	return replies, nil
}

// write writes the keys in the order of their slots, so that it need not connect anew
// for each.
func (r *cliReader) write(t *testing.T) {
	t.Helper()
	keys := make([]int, keysOutside)
	for i := range keys {
		keys[i] = i
	}
	slices.SortFunc(keys, func(a, b int) int { return harness.KeySlot(cliKey(a)) - harness.KeySlot(cliKey(b)) })
	commands := make([]string, keysOutside)
	for i, key := range keys {
		commands[i] = fmt.Sprintf("SET %s value:%d", cliKey(key), key)
	}
	replies, err := r.run(t.Context(), commands)
	if err != nil {
		t.Fatal(err)
	}
	for i, reply := range replies {
		if reply != "OK" {
			t.Fatalf("%s: %s", commands[i], reply)
		}
	}
}

// read reads some keys, and says which is not what it should be.
func (r *cliReader) read(ctx context.Context, keys []int) error {
	commands := make([]string, len(keys))
	for i, key := range keys {
		commands[i] = "GET " + cliKey(key)
	}
	replies, err := r.run(ctx, commands)
	if err != nil {
		return err
	}
	for i, reply := range replies {
		if want := fmt.Sprintf("value:%d", keys[i]); reply != want {
			return fmt.Errorf("%s gives %q", commands[i], reply)
		}
	}
	return nil
}

// readOn reads all the time, until the returned function is called, which says how many
// batches were read. A person whose valkey-cli is refused in the middle of a handover
// starts it again, also after the operation, which its last batch may have begun in:
// what is not read at last is an error.
func (r *cliReader) readOn(ctx context.Context) func() (int, error) {
	stop, done := make(chan struct{}), make(chan error, 1)
	batches := 0
	go func() {
		var last error
		for from := 0; ; from = (from + cliBatch) % keysOutside {
			keys := make([]int, cliBatch)
			for i := range keys {
				keys[i] = from + i
			}
			select {
			case <-stop:
				for begin := time.Now(); (last != nil || batches == 0) && time.Since(begin) < refusedAtMost; {
					if last = r.read(ctx, keys); last == nil {
						batches++
					}
				}
				done <- last
				return
			case <-ctx.Done():
				done <- ctx.Err()
				return
			default:
			}
			if last = r.read(ctx, keys); last == nil {
				batches++
			}
		}
	}()
	return func() (int, error) {
		close(stop)
		err := <-done
		return batches, err
	}
}

// finish reads every key, and checks where valkey-cli was led to.
func (r *cliReader) finish(t *testing.T, ways []string) {
	t.Helper()
	keys := make([]int, keysOutside)
	for i := range keys {
		keys[i] = i
	}
	slices.SortFunc(keys, func(a, b int) int { return harness.KeySlot(cliKey(a)) - harness.KeySlot(cliKey(b)) })
	if err := r.read(t.Context(), keys); err != nil {
		t.Error(err)
	}
	for to, times := range r.led {
		if !slices.Contains(ways, to) {
			t.Errorf("valkey-cli was led to %s %d times; the ways from outside are %v", to, times, ways)
		}
	}
	if len(r.led) < 4 {
		t.Errorf("valkey-cli was led to %v only", r.led)
	}
}

// machineCapture is the capture of a machine outside, where there can be one.
type machineCapture struct {
	o       *harness.Outside
	capture *harness.Capture
}

func newCapture(t *testing.T, s *harness.Space, o *harness.Outside) machineCapture {
	if !s.Local {
		s.CannotCheck(t, "that clients outside connect to no address inside")
		return machineCapture{o: o}
	}
	return machineCapture{o, o.Capture()}
}

// want checks that nothing left the machine but connections to the ports that the
// cluster's status names.
func (m machineCapture) want(t *testing.T, c *v1alpha1.ValkeyCluster) {
	t.Helper()
	if m.capture == nil {
		return
	}
	var ports []string
	for _, e := range c.Status.ExternalEndpoints {
		for _, port := range e.Ports {
			ports = append(ports, net.JoinHostPort(m.o.Machine, strconv.Itoa(int(port))))
		}
	}
	for _, other := range m.capture.Others(ports...) {
		t.Errorf("a client outside was led to %s; the ways from outside are %v", other, ports)
	}
}

// The capture of the test above notices a connection to an address inside, and that a
// name inside is asked for.
func TestTheCaptureNoticesWhatLeadsInside(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 0)
	if !s.Local {
		s.CannotCheck(t, "that clients outside connect to no address inside")
		return
	}
	leader, err := s.WaitForManager(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	o := s.Outside(nil, "shard-0."+outsideDomain)
	capture := o.Capture()
	const name = "c-0a1b2.c.team-a.svc.cluster.local"
	for _, host := range []string{leader.Status.PodIP, name, "shard-0." + outsideDomain} {
		if out, err := o.CLI(t.Context(), "", "-t", "1", "-h", host, "-p", "6379", "PING"); err == nil {
			t.Errorf("%s answers %q", host, out)
		}
	}
	got := capture.Others(net.JoinHostPort(o.Machine, "6379"))
	for _, want := range []string{net.JoinHostPort(leader.Status.PodIP, "6379"), "name " + name} {
		if !slices.Contains(got, want) {
			t.Errorf("the capture noticed %v, not %s", got, want)
		}
	}
}
