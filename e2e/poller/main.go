// Command poller asks every server of a cluster all the time what clients are told:
// CLUSTER SLOTS, CLUSTER SHARDS, and where a client is redirected to that reads a key of
// each shard.
//
// It is told on standard input, one command a line:
//
//	{"name": …}   a server, as package shown has it: a new one, or what became of it
//	stop          ask no more, report
//
// The end of the input means stop. On standard output it prints {"polling":true} when it
// is ready, and the report at last.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/poller/shown"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "poller: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("poller", flag.ContinueOnError)
	ca := flags.String("ca", "", "file with the authority that TLS nodes are verified by; none: plaintext")
	keys := flags.String("keys", "", "keys to read, one in each shard, such as a,b")
	every := flags.Duration("every", 5*time.Millisecond, "from one question to a server to the next")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p := &poller{keys: strings.Split(*keys, ","), every: *every, nodes: map[string]shown.Node{}, active: map[string]bool{}, asked: map[string]bool{}, seen: map[shown.Shown]int{}}
	if *ca != "" {
		pem, err := os.ReadFile(*ca)
		if err != nil {
			return fmt.Errorf("read --ca: %w", err)
		}
		p.roots = x509.NewCertPool()
		p.roots.AppendCertsFromPEM(pem)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	say := json.NewEncoder(out)
	if err := say.Encode(map[string]bool{"polling": true}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan() && lines.Text() != "stop"; {
		var n shown.Node
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			return fmt.Errorf("standard input has %q, which is neither a server nor stop: %w", lines.Text(), err)
		}
		p.learn(ctx, n)
	}
	stop()
	p.group.Wait()
	return say.Encode(p.report())
}

type poller struct {
	keys  []string
	every time.Duration
	roots *x509.CertPool
	group sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]shown.Node // by name
	// active are the IDs of those that serve clients, asked the names of those that are
	// asked.
	active, asked map[string]bool
	answers       int
	seen          map[shown.Shown]int
}

// learn notes what a server is, and begins to ask it once it serves clients.
func (p *poller) learn(ctx context.Context, n shown.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[n.Name], p.active[n.ID] = n, n.Active
	if n.Active && !p.asked[n.Name] {
		p.asked[n.Name] = true
		p.group.Go(func() { p.ask(ctx, n) })
	}
}

// ask puts the questions to a server again and again, as long as it serves clients.
func (p *poller) ask(ctx context.Context, n shown.Node) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	var client valkey.Client
	defer func() {
		if client != nil {
			client.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		active := p.nodes[n.Name].Active
		p.mu.Unlock()
		if !active {
			return
		}
		if client == nil {
			var err error
			if client, err = p.connect(n); err != nil {
				client = nil // it starts or ends
				continue
			}
		}
		p.round(ctx, client, n.Name)
	}
}

func (p *poller) connect(n shown.Node) (valkey.Client, error) {
	o := valkey.ClientOption{
		InitAddress: []string{net.JoinHostPort(n.IP, "6379")}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
		AlwaysRESP2: true, Dialer: net.Dialer{Timeout: time.Second}, ConnWriteTimeout: time.Second,
	}
	if p.roots != nil {
		o.TLSConfig = &tls.Config{RootCAs: p.roots, ServerName: n.ServerName, MinVersion: tls.VersionTLS12}
	}
	return valkey.NewClient(o)
}

// round puts every question once.
func (p *poller) round(ctx context.Context, client valkey.Client, viewer string) {
	questions := []string{shown.Slots, shown.Shards}
	commands := valkey.Commands{client.B().ClusterSlots().Build(), client.B().ClusterShards().Build()}
	for _, key := range p.keys {
		questions = append(questions, shown.Moved)
		commands = append(commands, client.B().Get().Key(key).Build())
	}
	for i, result := range client.DoMulti(ctx, commands...) {
		reply, err := result.ToAny()
		var said *valkey.ValkeyError
		switch {
		case errors.As(err, &said):
			reply = said.Error()
		case err != nil:
			continue // the connection broke
		}
		p.note(viewer, shown.Read(questions[i], reply))
	}
}

// note counts what was shown, of nodes that serve clients by one that does.
func (p *poller) note(viewer string, all []shown.Shown) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers++
	if !p.nodes[viewer].Active {
		return
	}
	for _, s := range all {
		if s.Question == shown.Moved || p.active[s.Subject] {
			s.Viewer = viewer
			p.seen[s]++
		}
	}
}

func (p *poller) report() shown.Report {
	r := shown.Report{Answers: p.answers}
	for s, times := range maps.All(p.seen) {
		s.Times = times
		r.Shown = append(r.Shown, s)
	}
	slices.SortFunc(r.Shown, func(a, b shown.Shown) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	return r
}
