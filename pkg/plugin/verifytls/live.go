package verifytls

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/checklist"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/tlsprobe"
)

// Ports of every server.
const (
	clientPort = 6379
	busPort    = 16379
)

// atOnce is how many servers are looked at at a time.
const atOnce = 16

// pods opens connections to ports of pods.
type pods interface {
	Dial(ctx context.Context, pod string, port int) (net.Conn, error)
	Close()
}

// direct reaches pods by their IP, as in a pod of the Kubernetes cluster.
type direct struct{ nodes []inspect.Node }

func (d direct) Dial(ctx context.Context, pod string, port int) (net.Conn, error) {
	for _, n := range d.nodes {
		if n.Name == pod && n.IP != "" {
			return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(n.IP, fmt.Sprint(port)))
		}
	}
	return nil, fmt.Errorf("pod %s has no IP yet", pod)
}

func (direct) Close() {}

func to(p pods, pod string, port int) tlsprobe.Dial {
	return func(ctx context.Context) (net.Conn, error) { return p.Dial(ctx, pod, port) }
}

// outside dials an address from where the command runs.
func (o *Options) outside(e external) tlsprobe.Dial {
	return func(ctx context.Context) (net.Conn, error) { return o.dialOutside(ctx, "tcp", e.address()) }
}

// each runs f for every index below n, a bounded number at a time.
func each(n int, f func(int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			f(i)
		})
	}
	wg.Wait()
}

// probe looks at all servers at once, each row in its place.
func (o *Options) probe(ctx context.Context, s *subject, p pods) ([]checklist.Row, error) {
	foreign, err := tlsprobe.ForeignCA()
	if err != nil {
		return nil, err
	}
	base := tlsprobe.Target{
		Roots: s.roots, Foreign: foreign, Now: o.clock.Now, Login: tlsprobe.Credentials{User: o.user, Password: o.password},
	}
	e := s.expected(o)
	var externals []external
	if o.external {
		externals = s.externals()
	}
	nodes := len(s.nodes)
	parts := make([][]checklist.Row, nodes+len(externals))
	var walked, walkedOutside []checklist.Row
	var wg sync.WaitGroup
	wg.Go(func() {
		each(len(parts), func(i int) {
			target := base
			if i < nodes {
				name := s.nodes[i].Name
				target.Client, target.Bus = to(p, name, clientPort), to(p, name, busPort)
				target.Name, target.Service = s.podName(name), s.names.Service
				parts[i] = e.nodeRows(name, tlsprobe.Probe(ctx, target), false)
				return
			}
			out := externals[i-nodes]
			target.Client, target.Name = o.outside(out), out.host
			parts[i] = e.nodeRows(out.address(), tlsprobe.Probe(ctx, target), true)
		})
	})
	wg.Go(func() { walked = o.walk(ctx, s, base, p) })
	wg.Go(func() { walkedOutside = o.walkOutside(ctx, s, base, externals) })
	wg.Wait()
	var list []checklist.Row
	for i, part := range parts {
		if i == nodes {
			list = append(list, walked...)
			walked = nil
		}
		list = append(list, part...)
	}
	return append(append(list, walked...), walkedOutside...), ctx.Err()
}

// walk goes a client's way inside: names of servers lead to their pods.
func (o *Options) walk(ctx context.Context, s *subject, base tlsprobe.Target, p pods) []checklist.Row {
	indices, has := s.shards()
	if len(s.nodes) == 0 || len(has) == 0 {
		return pathRows(nil, tlsprobe.Walked{Err: fmt.Errorf("no shard owns slots yet")}, "")
	}
	w := tlsprobe.Walk(ctx, tlsprobe.Path{
		First: net.JoinHostPort(s.names.Service, fmt.Sprint(clientPort)),
		Route: func(host, port string) (tlsprobe.Dial, bool) {
			node, ok := s.nodeAt(host, port)
			return to(p, node, clientPort), ok
		},
		Roots: base.Roots, Now: base.Now, Login: base.Login, Shards: has,
	})
	return pathRows(indices, w, "")
}

// walkOutside goes the way of a client outside, over the announced addresses.
func (o *Options) walkOutside(ctx context.Context, s *subject, base tlsprobe.Target, externals []external) []checklist.Row {
	if !o.external {
		return nil
	}
	r := &checklist.Rows{}
	if len(externals) == 0 {
		r.Fail(checkExternal, "no hostname and port is announced outside Kubernetes",
			"external access of a TLS cluster needs domain and preferredEndpointType: hostname; kubectl valkey status shows ExternalAccessReady")
		return r.List
	}
	indices, has := s.shards()
	w := tlsprobe.Walk(ctx, tlsprobe.Path{
		First: externals[0].address(),
		Route: func(host, port string) (tlsprobe.Dial, bool) {
			return func(ctx context.Context) (net.Conn, error) {
				return o.dialOutside(ctx, "tcp", net.JoinHostPort(host, port))
			}, true
		},
		Roots: base.Roots, Now: base.Now, Login: base.Login, Shards: has,
	})
	return pathRows(indices, w, "outside, ")
}

// pathRows judge how far a client came. An error of the server to a user doesn't
// count against the way.
func pathRows(indices []int32, w tlsprobe.Walked, prefix string) []checklist.Row {
	r := &checklist.Rows{Where: prefix + "all shards"}
	if prefix == "" {
		r.Where = ""
	}
	const login = "log in with --valkey-user NAME --password-stdin; the user needs the command cluster|slots"
	switch {
	case w.Refusal != "":
		r.Skip(checkPath, fmt.Sprintf("the server answers %q, so the way to other shards is not known", w.Refusal), login)
		return r.List
	case w.Err != nil:
		r.Fail(checkPath, fmt.Sprintf("a cluster client that verifies names gets nowhere: %v", w.Err), "correct what the checks above say, and verify again")
		return r.List
	}
	for i, shard := range w.Shards {
		r.Where = fmt.Sprintf("%sshard %d", prefix, indices[i])
		how := "directly"
		if shard.Redirected {
			how = "by a redirect"
		}
		switch {
		case shard.Err != nil:
			r.Fail(checkPath, fmt.Sprintf("a cluster client that verifies names doesn't reach it: %v", shard.Err),
				"clients go by the names that servers announce: the certificate has to cover them, and they have to lead to the node")
		case shard.Refusal != "":
			r.Pass(checkPath, fmt.Sprintf("reached %s over TLS %s; it answers %q, which is a matter of users, not of TLS", shard.Address, how, shard.Refusal))
		default:
			r.Pass(checkPath, fmt.Sprintf("reached %s %s", shard.Address, how))
		}
	}
	return r.List
}
