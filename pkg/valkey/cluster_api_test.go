//go:build api

package valkey

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	valkeygo "github.com/valkey-io/valkey-go"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey/valkeytest"
)

// formed starts a primary with all slots and a replica, by the commands of this
// package alone.
func formed(t *testing.T) (primary, replica *server) {
	t.Helper()
	ctx := t.Context()
	primary, replica = startServer(t, 1), startServer(t, 2)
	p, r := primary.dial(t), replica.dial(t)
	for i, node := range []Node{p, r} {
		if err := node.SetConfigEpoch(ctx, uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.AddSlots(ctx, slots.Split(1)[0]); err != nil {
		t.Fatal(err)
	}
	if err := p.Meet(ctx, replica.ip); err != nil {
		t.Fatal(err)
	}
	id, err := p.MyID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	valkeytest.Eventually(t, "the replica knows its primary", func() error { return r.Replicate(ctx, id) })
	valkeytest.Eventually(t, "both agree and the replica is in sync", func() error {
		view := topology.Merge([]topology.Reply{observe(t, p), observe(t, r)})
		leader, known := view.ByID(id)
		follower, ok := view.ByID(mustID(t, r))
		switch {
		case !known || leader.State != "ok" || !ok || follower.State != "ok":
			return errors.New("the cluster is not ok for both")
		case !view.AllAgree():
			return errors.New(view.FirstDifference())
		case !view.UncoveredSlots().Empty():
			return errors.New("slots are uncovered")
		case !follower.Replication.InSync():
			return errors.New("the replica is not in sync")
		}
		return nil
	})
	return primary, replica
}

func observe(t *testing.T, node Node) topology.Reply {
	t.Helper()
	reply, err := node.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func mustID(t *testing.T, node Node) string {
	t.Helper()
	id, err := node.MyID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAClusterFormsHandsOverAndForgetsByTheseCommandsAlone(t *testing.T) {
	ctx := t.Context()
	primary, replica := formed(t)
	p, r := primary.dial(t), replica.dial(t)

	if err := r.Failover(ctx, FailoverGraceful); err != nil {
		t.Fatal(err)
	}
	valkeytest.Eventually(t, "the replica has become primary", func() error {
		if role := observe(t, r).Replication.Role; role != topology.RolePrimary {
			return fmt.Errorf("it is %s", role)
		}
		return nil
	})
	if err := r.BumpEpoch(ctx); err != nil {
		t.Error(err)
	}
	if err := r.Forget(ctx, strings.Repeat("0", 40)); err != nil {
		t.Errorf("forget a node that nobody knows: %v", err)
	}
	formerID := mustID(t, p)
	if err := r.Forget(ctx, formerID); err != nil {
		t.Error(err)
	}
	for _, member := range observe(t, r).Members {
		if member.ID == formerID {
			t.Error("the node is still known")
		}
	}
	noDenials(t, primary, replica)
}

func TestSettingsAndUsersAreChangedAndReadBack(t *testing.T) {
	ctx := t.Context()
	s := startServer(t, 1)
	node := s.dial(t)
	if err := node.ConfigSet(ctx, [2]string{"maxmemory", "100mb"}, [2]string{"cluster-announce-hostname", "a.example.com"}); err != nil {
		t.Fatal(err)
	}
	got, err := node.ConfigGet(ctx, "maxmemory", "cluster-announce-hostname", "no-such-setting")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["maxmemory"] != "104857600" || got["cluster-announce-hostname"] != "a.example.com" {
		t.Errorf("%v", got)
	}
	err = node.ConfigSet(ctx, [2]string{"maxmemory", "1mb"}, [2]string{"no-such-setting", "1"})
	if !IsReply(err) {
		t.Errorf("a setting that doesn't exist: %v", err)
	}
	if again, err := node.ConfigGet(ctx, "maxmemory"); err != nil || again["maxmemory"] != "104857600" {
		t.Errorf("half of a refused change was made: %v, %v", again, err)
	}
	if err := node.ACLLoad(ctx); err != nil {
		t.Error(err)
	}
	users, err := node.ACLList(ctx)
	if err != nil || len(users) != 4 {
		t.Errorf("users %v, %v", users, err)
	}
	noDenials(t, s)
}

func TestAServerThatHangsCostsOneTimeoutAndIsUsedAgainAfterwards(t *testing.T) {
	s := startServer(t, 1)
	pool := NewPool(NewDialer())
	observeWithin := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		node, err := pool.Dial(ctx, s.target(), credentials())
		if err != nil {
			return err
		}
		defer node.Close()
		_, err = node.Observe(ctx)
		return err
	}
	if err := observeWithin(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.signal(t, syscall.SIGSTOP)
	for range 3 {
		start := time.Now()
		err := observeWithin(200 * time.Millisecond)
		if !errors.Is(err, context.DeadlineExceeded) || IsReply(err) {
			t.Errorf("F-08: %v", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("F-08: it took %s", took)
		}
	}
	s.signal(t, syscall.SIGCONT)
	valkeytest.Eventually(t, "the server answers again", func() error { return observeWithin(5 * time.Second) })
}

// noDenials fails if a server ran a command that isn't in CommandsSent, or denied
// one: the library sends nothing of its own.
func noDenials(t *testing.T, servers ...*server) {
	t.Helper()
	known := map[string]bool{"hello": true, "auth": true}
	for _, name := range CommandsSent() {
		known[name] = true
	}
	for _, name := range []string{"acl|log", "psync", "replconf", "replicaof"} {
		known[name] = true // this check's own, and replication's
	}
	for _, s := range servers {
		reader, err := valkeygo.NewClient(valkeygo.ClientOption{
			InitAddress: []string{s.target().Address}, Username: "reader", Password: "reader",
			ForceSingleClient: true, DisableCache: true, ClientSetInfo: valkeygo.DisableClientSetInfo,
		})
		if err != nil {
			t.Fatal(err)
		}
		denials, err := reader.Do(t.Context(), reader.B().Arbitrary("ACL", "LOG").Build()).ToArray()
		if err != nil || len(denials) > 0 {
			t.Errorf("S-05: %s denied something: %v, %v", s.ip, denials, err)
		}
		stats, err := reader.Do(t.Context(), reader.B().Arbitrary("INFO", "commandstats").Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		for _, match := range regexp.MustCompile(`(?m)^cmdstat_([^:]+):`).FindAllStringSubmatch(stats, -1) {
			if !known[match[1]] {
				t.Errorf("S-05: %s was sent %s, which CommandsSent doesn't list", s.ip, match[1])
			}
		}
	}
}
