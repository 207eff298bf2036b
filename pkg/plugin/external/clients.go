package external

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// connection is one of a client to a node.
type connection struct {
	pod    string
	remote netip.AddrPort
}

// connections of clients to the nodes of a cluster at one moment.
type connections struct {
	open map[connection]bool
	// err is why some nodes could not be asked.
	err error
	// managers is whether the manager's own connections may be among them, as its pods may
	// not be listed.
	managers bool
}

// askedAtOnce bounds how many nodes are asked at the same time.
const askedAtOnce = 8

// connected finds the connections of clients to the nodes. It reads them from the
// kernel: who may list them in Valkey is up to the users' own roles, and the plugin
// knows no password. The connections of the nodes to each other and those of the manager
// don't count.
func (o *Options) connected(ctx context.Context) (connections, error) {
	s, err := o.Look(ctx)
	if err != nil {
		return connections{}, err
	}
	pods := s.Pods
	out := connections{open: map[connection]bool{}, err: pods.Err}
	var managers corev1.PodList
	err = o.Client.List(ctx, &managers, client.InNamespace(kube.ManagerNamespace), client.MatchingLabels{"app": kube.ManagerDeployment})
	out.managers = err != nil || len(managers.Items) == 0
	peers := map[netip.Addr]bool{}
	for _, pod := range slices.Concat(pods.Items, managers.Items) {
		for _, ip := range pod.Status.PodIPs {
			if addr, err := netip.ParseAddr(ip.IP); err == nil {
				peers[addr] = true
			}
		}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	places := make(chan struct{}, askedAtOnce)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			remotes, err := o.remotes(ctx, pod)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && out.err == nil {
				out.err = err
			}
			for _, r := range remotes {
				if !peers[r.Addr()] {
					out.open[connection{pod.Name, r}] = true
				}
			}
		})
	}
	group.Wait()
	return out, ctx.Err()
}

// remotes reads who is connected to a node's client port.
func (o *Options) remotes(ctx context.Context, pod *corev1.Pod) ([]netip.AddrPort, error) {
	argv := []string{"cat", "/proc/net/tcp"}
	if slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool { return strings.Contains(ip.IP, ":") }) {
		argv = append(argv, "/proc/net/tcp6")
	}
	var stdout, stderr bytes.Buffer
	err := o.runner(ctx, kube.Command{Namespace: pod.Namespace, Pod: pod.Name, Container: objects.ContainerName, Argv: argv, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return nil, fmt.Errorf("list the connections of pod %s: %w%s", pod.Name, err, strings.TrimRight(" "+stderr.String(), " \n"))
	}
	return parseSockets(stdout.String()), nil
}

// parseSockets finds the established connections to the client port in the kernel's
// tables, /proc/net/tcp and /proc/net/tcp6: a line holds, after its number, the local
// address, the remote one, and the state.
func parseSockets(table string) []netip.AddrPort {
	const established = "01"
	var out []netip.AddrPort
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != established {
			continue
		}
		local, err := parseSocket(fields[1])
		remote, err2 := parseSocket(fields[2])
		if err == nil && err2 == nil && int32(local.Port()) == objects.ClientPort {
			out = append(out, remote)
		}
	}
	return out
}

// parseSocket reads an address as the kernel writes it, for example 0100007F:18EB: words
// of four bytes in the machine's order, which is little-endian wherever Valkey's images
// run, then the port.
func parseSocket(text string) (netip.AddrPort, error) {
	address, port, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(address)
	number, err2 := hex.DecodeString(port)
	if err := errors.Join(err, err2); err != nil || !ok || len(raw)%4 != 0 || len(number) != 2 {
		return netip.AddrPort{}, fmt.Errorf("%q is no address of a socket", text)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%q is no address of a socket", text)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number[0])<<8|uint16(number[1])), nil
}

// tellHolders says which clients may still hold names that are no longer given: those
// that are connected since before. Without a before, as when the command goes on where it
// was interrupted, it is all that are connected.
func (o *Options) tellHolders(ctx context.Context, before *connections) error {
	now, err := o.connected(ctx)
	if err != nil {
		return err
	}
	title := "Clients that are connected since before and may still hold the outside names"
	if before == nil {
		title = "Clients that are connected; those that connected before may still hold the outside names"
	} else {
		for c := range now.open {
			if !before.open[c] {
				delete(now.open, c)
			}
		}
		now.err = errors.Join(before.err, now.err)
	}
	_, err = fmt.Fprint(o.Streams.ErrOut, holders(title, now))
	return err
}

// holders lists connections by the client's address.
func holders(title string, c connections) string {
	type holder struct{ connections, nodes int }
	clients := map[netip.Addr]*holder{}
	seen := map[netip.Addr]map[string]bool{}
	for connection := range c.open {
		from := connection.remote.Addr()
		if clients[from] == nil {
			clients[from], seen[from] = &holder{}, map[string]bool{}
		}
		clients[from].connections++
		if !seen[from][connection.pod] {
			seen[from][connection.pod] = true
			clients[from].nodes++
		}
	}
	var b strings.Builder
	if len(clients) == 0 && c.err == nil {
		fmt.Fprintf(&b, "%s: none.\n", title)
	} else {
		fmt.Fprintf(&b, "%s (addresses as the nodes see them):\n", title)
	}
	addresses := make([]netip.Addr, 0, len(clients))
	for a := range clients {
		addresses = append(addresses, a)
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	for _, a := range addresses {
		fmt.Fprintf(&b, "  %s: %s to %s\n", a, count(clients[a].connections, "connection"), count(clients[a].nodes, "node"))
	}
	if len(clients) > 0 && c.managers {
		b.WriteString("The manager's own may be among them, as its pods could not be listed.\n")
	}
	if len(clients) > 0 {
		b.WriteString("They learn the addresses inside when they refresh what they know of the cluster, or connect anew.\n")
	}
	if c.err != nil {
		fmt.Fprintf(&b, "  not all can be listed: %s\n", output.Clean(c.err.Error()))
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
