// Package hostnet lays the cables of the cluster: a bridge on the host and one
// veth pair to each node.
package hostnet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

// CreateBridge makes the bridge with the host's address.
func CreateBridge(ctx context.Context) error {
	return run(ctx,
		[]string{"link", "add", layout.Bridge, "type", "bridge"},
		[]string{"addr", "add", layout.HostCIDR, "dev", layout.Bridge},
		[]string{"link", "set", layout.Bridge, "up"})
}

// Connect gives the network namespace of process pid an interface eth0 that is
// plugged into the bridge.
func Connect(ctx context.Context, n layout.Node, pid int) error {
	if err := Disconnect(ctx, n); err != nil {
		return err
	}
	return run(ctx,
		[]string{"link", "add", n.Veth(), "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(pid)},
		[]string{"link", "set", n.Veth(), "master", layout.Bridge, "up"})
}

// Disconnect removes the node's cable, if there is one.
func Disconnect(ctx context.Context, n layout.Node) error { return remove(ctx, n.Veth()) }

// Partition pulls the node's cable out of the bridge.
func Partition(ctx context.Context, n layout.Node) error {
	return run(ctx, []string{"link", "set", n.Veth(), "nomaster"})
}

// Heal plugs it in again.
func Heal(ctx context.Context, n layout.Node) error {
	return run(ctx, []string{"link", "set", n.Veth(), "master", layout.Bridge, "up"})
}

// Partitioned reports whether the node's cable is there and not plugged in.
func Partitioned(n layout.Node) bool {
	return exists(n.Veth()) && !exists(n.Veth()+"/brport")
}

// Exists reports whether anything of this package's making is left.
func Exists() bool {
	for _, n := range layout.Nodes() {
		if exists(n.Veth()) {
			return true
		}
	}
	return exists(layout.Bridge)
}

// RemoveAll removes the bridge and every cable.
func RemoveAll(ctx context.Context) error {
	var errs []error
	for _, n := range layout.Nodes() {
		errs = append(errs, Disconnect(ctx, n))
	}
	return errors.Join(append(errs, remove(ctx, layout.Bridge))...)
}

// remove deletes a link. The kernel may do the same at the same time, when a
// dead node's namespace goes, so what counts is that it is gone.
func remove(ctx context.Context, link string) error {
	if !exists(link) {
		return nil
	}
	if err := run(ctx, []string{"link", "del", link}); err != nil && exists(link) {
		return err
	}
	return nil
}

func exists(link string) bool {
	_, err := os.Stat("/sys/class/net/" + link)
	return err == nil
}

func run(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
