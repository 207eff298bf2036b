package valkey

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	valkeygo "github.com/valkey-io/valkey-go"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// Ports that nodes meet at. Nodes never announce others for the cluster bus.
const (
	clientPort = "6379"
	busPort    = "16379"
)

// Observe implements Node.
func (c *connection) Observe(ctx context.Context) (topology.Reply, error) {
	reply := topology.Reply{Node: c.target.Node, PodIP: c.target.PodIP}
	answers, err := c.read(ctx,
		clusterMyID.with(), clusterNodes.with(), clusterInfo.with(), info.with("replication"), info.with("keyspace"), clusterMigrations.with())
	if err != nil {
		return reply, err
	}
	jobs := len(answers) - 1
	texts := make([]string, jobs)
	for i, answer := range answers[:jobs] {
		if texts[i], err = text(answer); err != nil {
			return reply, fmt.Errorf("node %s: %w", c.target.Node, err)
		}
	}
	reply.ID = texts[0]
	if reply.Members, err = topology.ParseNodes(texts[1]); err != nil {
		return reply, fmt.Errorf("node %s: %s: %w", c.target.Node, clusterNodes, err)
	}
	if reply.Info, err = topology.ParseClusterInfo(texts[2]); err != nil {
		return reply, fmt.Errorf("node %s: %s: %w", c.target.Node, clusterInfo, err)
	}
	if reply.Replication, err = topology.ParseReplication(texts[3]); err != nil {
		return reply, fmt.Errorf("node %s: INFO replication: %w", c.target.Node, err)
	}
	if reply.Keys, err = topology.ParseKeyspace(texts[4]); err != nil {
		return reply, fmt.Errorf("node %s: INFO keyspace: %w", c.target.Node, err)
	}
	if reply.Migrations, err = migrations(answers[jobs]); err != nil {
		return reply, fmt.Errorf("node %s: %w", c.target.Node, err)
	}
	return reply, nil
}

// text is the content of an answer. Those of several lines are marked as plain
// text by the protocol, and the library leaves the mark in place.
func text(answer valkeygo.ValkeyMessage) (string, error) {
	content, err := answer.ToString()
	if !answer.IsString() {
		content = strings.TrimPrefix(content, "txt:")
	}
	return content, err
}

// Ping implements Node.
func (c *connection) Ping(ctx context.Context) error {
	_, err := c.read(ctx, ping.with())
	return err
}

// MyID implements Node.
func (c *connection) MyID(ctx context.Context) (string, error) {
	answers, err := c.read(ctx, clusterMyID.with())
	if err != nil {
		return "", err
	}
	return answers[0].ToString()
}

// SetConfigEpoch implements Node.
func (c *connection) SetConfigEpoch(ctx context.Context, epoch uint64) error {
	return c.order(ctx, clusterSetEpoch.with(strconv.FormatUint(epoch, 10)))
}

// BumpEpoch implements Node.
func (c *connection) BumpEpoch(ctx context.Context) error {
	return c.order(ctx, clusterBump.with())
}

// AddSlots implements Node.
func (c *connection) AddSlots(ctx context.Context, set slots.Set) error {
	if set.Empty() {
		return nil
	}
	return c.order(ctx, clusterAddSlots.with(bounds(set)...))
}

// DeleteSlots implements Node.
func (c *connection) DeleteSlots(ctx context.Context, set slots.Set) error {
	if set.Empty() {
		return nil
	}
	return c.order(ctx, clusterDelSlots.with(bounds(set)...))
}

// bounds writes first and last slot of each range.
func bounds(set slots.Set) []string {
	var words []string
	for _, r := range set.Ranges() {
		words = append(words, strconv.Itoa(int(r.Start)), strconv.Itoa(int(r.End)))
	}
	return words
}

// Meet implements Node. The address is written without brackets, as the server
// wants IPv6.
func (c *connection) Meet(ctx context.Context, ip string) error {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return fmt.Errorf("node %s: meet the node at %q: that is no IP address", c.target.Node, ip)
	}
	return c.order(ctx, clusterMeet.with(addr.String(), clientPort, busPort))
}

// Replicate implements Node.
func (c *connection) Replicate(ctx context.Context, primaryID string) error {
	return c.order(ctx, clusterFollow.with(primaryID))
}

// Forget implements Node.
func (c *connection) Forget(ctx context.Context, id string) error {
	if err := c.order(ctx, clusterForget.with(id)); err != nil && !isUnknownNode(err) {
		return err
	}
	return nil
}

// Failover implements Node.
func (c *connection) Failover(ctx context.Context, mode FailoverMode) error {
	if mode == FailoverGraceful {
		return c.order(ctx, clusterFailover.with())
	}
	return c.order(ctx, clusterFailover.with(string(mode)))
}

// ConfigSet implements Node.
func (c *connection) ConfigSet(ctx context.Context, directives ...[2]string) error {
	if len(directives) == 0 {
		return nil
	}
	var words []string
	for _, d := range directives {
		words = append(words, d[0], d[1])
	}
	return c.order(ctx, configSet.with(words...))
}

// ConfigGet implements Node.
func (c *connection) ConfigGet(ctx context.Context, names ...string) (map[string]string, error) {
	if len(names) == 0 {
		return map[string]string{}, nil
	}
	answers, err := c.read(ctx, configGet.with(names...))
	if err != nil {
		return nil, err
	}
	return answers[0].AsStrMap()
}

// ACLLoad implements Node.
func (c *connection) ACLLoad(ctx context.Context) error {
	return c.order(ctx, aclLoad.with())
}

// ACLList implements Node.
func (c *connection) ACLList(ctx context.Context) ([]string, error) {
	answers, err := c.read(ctx, aclList.with())
	if err != nil {
		return nil, err
	}
	return answers[0].AsStrSlice()
}

// subcommandsField is the place of the subcommands in an entry of COMMAND INFO.
const subcommandsField = 9

// Vocabulary implements Node.
func (c *connection) Vocabulary(ctx context.Context, commands []string) (acl.Vocabulary, error) {
	requests := []request{aclCat.with()}
	if len(commands) > 0 {
		// Without names it would answer with every command that there is.
		requests = append(requests, commandInfo.with(commands...))
	}
	answers, err := c.read(ctx, requests...)
	if err != nil {
		return acl.Vocabulary{}, err
	}
	v := acl.Vocabulary{Commands: map[string]bool{}}
	if v.Categories, err = answers[0].AsStrSlice(); err != nil || len(commands) == 0 {
		return v, err
	}
	entries, err := answers[1].ToArray()
	if err != nil {
		return acl.Vocabulary{}, err
	}
	for i, entry := range entries {
		fields, err := entry.ToArray()
		if err != nil || len(fields) == 0 || i >= len(commands) {
			continue // nil: the server knows no such command
		}
		subcommands := false
		if len(fields) > subcommandsField {
			list, err := fields[subcommandsField].ToArray()
			subcommands = err == nil && len(list) > 0
		}
		v.Commands[commands[i]] = subcommands
	}
	return v, nil
}

// order sends a command that changes something, once.
func (c *connection) order(ctx context.Context, r request) error {
	_, err := c.pipeline(ctx, r)
	return err
}
