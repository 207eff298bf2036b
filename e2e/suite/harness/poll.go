//go:build e2e

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Shown is what a server told clients of a node.
type Shown struct {
	// Viewer is the pod that answered, ID the node that it spoke of.
	Viewer, ID string
	Endpoint   string
	Port       int
}

// Poller asks every server of a cluster all the time what clients are told.
type Poller struct {
	s       *Space
	cluster string
	args    []string
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu      sync.Mutex
	shown   map[Shown]int
	answers int
	asked   map[string]bool
	// active are the nodes, by name and by ID, that have found their place: one that joins
	// serves nobody, and its name comes with its second message.
	active map[string]bool
	// right are the addresses that a node may have, by its ID.
	right map[string]map[string]bool
}

// Poll starts asking, until Stop. Args go to valkey-cli.
func (s *Space) Poll(cluster string, args ...string) *Poller {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	p := &Poller{
		s: s, cluster: cluster, args: args, stop: stop,
		shown: map[Shown]int{}, asked: map[string]bool{}, active: map[string]bool{}, right: map[string]map[string]bool{},
	}
	p.look(ctx)
	p.group.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.look(ctx)
			}
		}
	})
	s.t.Cleanup(func() {
		stop()
		p.group.Wait()
	})
	return p
}

// look notes who there is, and starts to ask new servers.
func (p *Poller) look(ctx context.Context) {
	for _, n := range p.s.Nodes(p.cluster) {
		p.mu.Lock()
		switch n.Spec.Lifecycle {
		case v1alpha1.LifecycleActive:
			p.active[n.Name], p.active[n.Status.NodeID] = true, true
		case v1alpha1.LifecycleLeaving:
			// The others forget it, and tell it nothing of those that come.
			p.active[n.Name] = false
		}
		p.mu.Unlock()
	}
	for _, pod := range p.s.Pods(p.cluster) {
		running := pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
		p.mu.Lock()
		ask := running && p.active[pod.Name] && !p.asked[pod.Name]
		p.asked[pod.Name] = p.asked[pod.Name] || ask
		p.mu.Unlock()
		if !ask {
			continue
		}
		for _, question := range []string{"SLOTS", "SHARDS"} {
			p.group.Go(func() { p.ask(ctx, pod.Name, question) })
		}
	}
	c := p.s.Get(p.cluster)
	for _, n := range p.s.Nodes(p.cluster) {
		if n.Status.NodeID == "" {
			continue
		}
		name := fmt.Sprintf("%s.%s.%s.svc.cluster.local", n.Name, p.cluster, p.s.Name)
		p.allow(n.Status.NodeID, name, 6379)
		if c.Spec.TLS == nil {
			p.allow(n.Status.NodeID, n.Status.PodIP, 6379)
		}
		for _, e := range c.Status.ExternalEndpoints {
			if e.ShardIndex == n.Spec.ShardIndex && int(n.Spec.NodeIndex) < len(e.Ports) && e.Ports[n.Spec.NodeIndex] != 0 {
				p.allow(n.Status.NodeID, announce.ShardHostname(c.Spec.ExternalAccess, e.ShardIndex), e.Ports[n.Spec.NodeIndex])
				p.allow(n.Status.NodeID, e.Hostname, e.Ports[n.Spec.NodeIndex])
			}
		}
	}
}

func (p *Poller) allow(id, host string, port int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.right[id] == nil {
		p.right[id] = map[string]bool{}
	}
	if host != "" {
		p.right[id][net.JoinHostPort(host, strconv.Itoa(int(port)))] = true
	}
}

// ask puts one question to one server again and again, until the server ends.
func (p *Poller) ask(ctx context.Context, pod, question string) {
	argv := append([]string{"valkey-cli"}, p.args...)
	argv = append(argv, "--json", "-r", "1000000", "-i", "0.02", "CLUSTER", question)
	request := p.s.Clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(p.s.Name).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: argv, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(p.s.Config, "GET", request.URL().String())
	if err != nil {
		return
	}
	read, write := io.Pipe()
	p.group.Go(func() {
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			for _, shown := range parseShown(pod, question, lines.Text()) {
				p.mu.Lock()
				if p.active[shown.ID] && p.active[pod] {
					p.shown[shown]++
				}
				p.mu.Unlock()
			}
			p.mu.Lock()
			p.answers++
			p.mu.Unlock()
		}
		read.Close()
	})
	// It ends with the pod, or when the test is through.
	_ = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: write, Stderr: io.Discard})
	write.Close()
}

// parseShown reads one reply as valkey-cli --json writes it.
func parseShown(viewer, question, line string) []Shown {
	var out []Shown
	if question == "SHARDS" {
		var shards []struct {
			Nodes []struct {
				ID       string `json:"id"`
				Endpoint string `json:"endpoint"`
				Port     int    `json:"port"`
				TLSPort  int    `json:"tls-port"`
			} `json:"nodes"`
		}
		if json.Unmarshal([]byte(line), &shards) != nil {
			return nil // an error text of a server that starts or ends
		}
		for _, shard := range shards {
			for _, n := range shard.Nodes {
				out = append(out, Shown{viewer, n.ID, n.Endpoint, max(n.Port, n.TLSPort)})
			}
		}
		return out
	}
	var ranges [][]any
	if json.Unmarshal([]byte(line), &ranges) != nil {
		return nil
	}
	for _, r := range ranges {
		for _, entry := range r[2:] {
			node, ok := entry.([]any)
			if !ok || len(node) < 3 {
				continue
			}
			endpoint, _ := node[0].(string)
			port, _ := node[1].(float64)
			id, _ := node[2].(string)
			out = append(out, Shown{viewer, id, endpoint, int(port)})
		}
	}
	return out
}

// Stop ends the asking. It returns how many answers there were, and what of them was
// wrong: a name that is none, or an address that no node of that ID has.
func (p *Poller) Stop() (answers int, wrong []string) {
	p.look(p.s.Background())
	p.stop()
	p.group.Wait()
	return p.answers, p.judge()
}

func (p *Poller) judge() []string {
	var wrong []string
	for shown, times := range p.shown {
		right, known := p.right[shown.ID]
		address := net.JoinHostPort(shown.Endpoint, strconv.Itoa(shown.Port))
		bad := shown.Endpoint == "" || shown.Endpoint == "?" || shown.Port == 0
		if bad || known && !right[address] {
			wrong = append(wrong, fmt.Sprintf("%s gave %q for %.8s, %d times", shown.Viewer, address, shown.ID, times))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// JudgeShown is what Stop would say of answers that were given, for a test of the
// poller itself.
func JudgeShown(right map[string][]string, question string, lines ...string) []string {
	p := &Poller{shown: map[Shown]int{}, right: map[string]map[string]bool{}}
	for id, addresses := range right {
		p.right[id] = map[string]bool{}
		for _, a := range addresses {
			p.right[id][a] = true
		}
	}
	for _, line := range lines {
		for _, shown := range parseShown("viewer", strings.ToUpper(question), line) {
			p.shown[shown]++
		}
	}
	return p.judge()
}
