//go:build e2e

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/poller/shown"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// Poller asks every server of a cluster, from a pod of its own, what clients are told,
// all the time. See e2e/poller.
type Poller struct {
	s       *Space
	cluster string
	program *process
	cancel  context.CancelFunc
	looking sync.WaitGroup

	// told is what the program knows of each node, by name.
	told map[string]shown.Node
	// right are the addresses that a node may have, by its ID, and that a redirect may
	// lead to, by its slot.
	right map[string]map[string]bool
	// slots of the keys that are read, by shard.
	slots []int
}

// Poll starts asking, until Stop. Secret, if it is not empty, is that with the ca.crt
// that the nodes are verified by. No slot may move meanwhile.
func (s *Space) Poll(cluster, secret string) *Poller {
	s.t.Helper()
	p := &Poller{s: s, cluster: cluster, told: map[string]shown.Node{}, right: map[string]map[string]bool{}}
	args := []string{"--keys", strings.Join(p.keys(), ",")}
	if secret != "" {
		args = append(args, "--ca", "/secret/ca.crt")
	}
	p.program = s.runPod(s.ClientPod("poller", secret), "./e2e/poller", `{"polling":true}`, args...)
	p.look()
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(s.t.Context())
	p.looking.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.look()
			}
		}
	})
	s.t.Cleanup(func() {
		p.cancel()
		p.looking.Wait()
	})
	return p
}

// keys finds one in the slots of each shard.
func (p *Poller) keys() []string {
	var out []string
	for _, set := range slots.Split(int(p.s.Get(p.cluster).Spec.Shards)) {
		for i := 0; ; i++ {
			key := fmt.Sprintf("poll:%d", i)
			if slot := KeySlot(key); set.Contains(slot) {
				out, p.slots = append(out, key), append(p.slots, slot)
				break
			}
		}
	}
	return out
}

// look tells the program who there is, and notes what clients may be told.
func (p *Poller) look() {
	c := p.s.Get(p.cluster)
	for _, n := range p.s.Nodes(p.cluster) {
		if n.Status.NodeID == "" || n.Status.PodIP == "" {
			continue
		}
		name := fmt.Sprintf("%s.%s.%s.svc.cluster.local", n.Name, p.cluster, p.s.Name)
		p.allow(n, name, 6379)
		if c.Spec.TLS == nil {
			p.allow(n, n.Status.PodIP, 6379)
		}
		for _, e := range c.Status.ExternalEndpoints {
			if e.ShardIndex == n.Spec.ShardIndex && int(n.Spec.NodeIndex) < len(e.Ports) && e.Ports[n.Spec.NodeIndex] != 0 {
				p.allow(n, announce.ShardHostname(c.Spec.ExternalAccess, e.ShardIndex), e.Ports[n.Spec.NodeIndex])
				p.allow(n, e.Hostname, e.Ports[n.Spec.NodeIndex])
			}
		}
		// One that joins serves nobody, and its name comes with its second message; one
		// that leaves is forgotten by the others, and told nothing of those that come.
		p.tell(shown.Node{Name: n.Name, ID: n.Status.NodeID, IP: n.Status.PodIP, ServerName: name, Active: n.Spec.Lifecycle == v1alpha1.LifecycleActive})
	}
}

func (p *Poller) tell(n shown.Node) {
	if p.told[n.Name] == n {
		return
	}
	p.told[n.Name] = n
	line, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings and a bool
	}
	p.program.tell(string(line))
}

func (p *Poller) allow(n v1alpha1.ValkeyNode, host string, port int32) {
	if host == "" {
		return
	}
	for _, subject := range []string{n.Status.NodeID, fmt.Sprintf("slot %d", p.slots[n.Spec.ShardIndex])} {
		if p.right[subject] == nil {
			p.right[subject] = map[string]bool{}
		}
		p.right[subject][net.JoinHostPort(host, strconv.Itoa(int(port)))] = true
	}
}

// Stop ends the asking. It returns how many answers to each question showed something,
// and what of them was wrong: a name that is none, or an address that no node of that ID
// has.
func (p *Poller) Stop() (answers map[string]int, wrong []string) {
	p.s.t.Helper()
	p.cancel()
	p.looking.Wait()
	p.look()
	report := &shown.Report{}
	p.program.stop("stop", report)
	answers = map[string]int{}
	for _, s := range report.Shown {
		answers[s.Question] += s.Times
	}
	return answers, shown.Wrong(report.Shown, p.right)
}
