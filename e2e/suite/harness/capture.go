//go:build e2e

package harness

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// Capture notes what leaves the network namespace of a client outside: whom it
// connects to, and which names it asks for beside those that it knows.
type Capture struct {
	o    *Outside
	conn *packet.Conn
	done chan struct{}

	mu      sync.Mutex
	seen    map[string]int
	read    int // packets that were read
	arrived int // packets that the kernel counted
	err     error
}

const (
	protocolTCP, protocolUDP = 6, 17
	flagSYN, flagACK         = 0x02, 0x10
	portDNS                  = 53
)

// Capture begins to listen at the host's end of the namespace's cable.
func (o *Outside) Capture() *Capture {
	o.s.t.Helper()
	device, err := net.InterfaceByName(o.cable)
	if err != nil {
		o.s.t.Fatalf("find the cable of the client outside: %v", err)
	}
	filter, err := bpf.Assemble(firstPackets(o.address))
	if err != nil {
		o.s.t.Fatalf("assemble the filter of the capture: %v", err)
	}
	conn, err := packet.Listen(device, packet.Datagram, unix.ETH_P_ALL, &packet.Config{Filter: filter})
	if err != nil {
		o.s.t.Fatalf("listen at %s: %v", o.cable, err)
	}
	c := &Capture{o: o, conn: conn, done: make(chan struct{}), seen: map[string]int{}}
	go c.run()
	o.s.t.Cleanup(func() {
		conn.Close()
		<-c.done
	})
	return c
}

// firstPackets passes what an address sends first: a TCP SYN, or a question to a name
// server.
func firstPackets(from net.IP) []bpf.Instruction {
	const drop, pass = 14, 13 // of the instructions below
	skip := func(from, to int) uint8 { return uint8(to - from - 1) }
	source := from.To4()
	return []bpf.Instruction{
		0:  bpf.LoadExtension{Num: bpf.ExtProto},
		1:  bpf.JumpIf{Val: unix.ETH_P_IP, SkipFalse: skip(1, drop)},
		2:  bpf.LoadAbsolute{Off: 12, Size: 4},
		3:  bpf.JumpIf{Val: uint32(source[0])<<24 | uint32(source[1])<<16 | uint32(source[2])<<8 | uint32(source[3]), SkipFalse: skip(3, drop)},
		4:  bpf.LoadMemShift{Off: 0},
		5:  bpf.LoadAbsolute{Off: 9, Size: 1},
		6:  bpf.JumpIf{Val: protocolUDP, SkipFalse: skip(6, 9)},
		7:  bpf.LoadIndirect{Off: 2, Size: 2},
		8:  bpf.JumpIf{Val: portDNS, SkipTrue: skip(8, pass), SkipFalse: skip(8, drop)},
		9:  bpf.JumpIf{Val: protocolTCP, SkipFalse: skip(9, drop)},
		10: bpf.LoadIndirect{Off: 13, Size: 1},
		11: bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: flagSYN | flagACK},
		12: bpf.JumpIf{Val: flagSYN, SkipFalse: skip(12, drop)},
		13: bpf.RetConstant{Val: 512},
		14: bpf.RetConstant{Val: 0},
	}
}

func (c *Capture) run() {
	defer close(c.done)
	buffer := make([]byte, 512)
	for {
		n, _, err := c.conn.ReadFrom(buffer)
		if errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) {
			return
		}
		what := ""
		if err == nil {
			what, err = describe(buffer[:n])
		}
		c.mu.Lock()
		if err != nil {
			c.err = err
			c.mu.Unlock()
			return
		}
		c.seen[what]++
		c.read++
		c.mu.Unlock()
	}
}

// describe says what a packet is for: host:port, or the name that is asked for.
func describe(datagram []byte) (string, error) {
	header, err := ipv4.ParseHeader(datagram)
	if err != nil {
		return "", fmt.Errorf("a packet of the client outside: %w", err)
	}
	payload := datagram[header.Len:]
	if header.Protocol != protocolUDP {
		return net.JoinHostPort(header.Dst.String(), fmt.Sprint(int(payload[2])<<8|int(payload[3]))), nil
	}
	var parser dnsmessage.Parser
	if _, err := parser.Start(payload[8:]); err != nil {
		return "", fmt.Errorf("a question of the client outside: %w", err)
	}
	question, err := parser.Question()
	if err != nil {
		return "", fmt.Errorf("a question of the client outside: %w", err)
	}
	return "name " + strings.TrimSuffix(question.Name.String(), "."), nil
}

// complete returns an error until every packet that arrived was read. The kernel has a
// packet before its answer is sent, so that a client that is through has nothing underway.
func (c *Capture) complete() error {
	c.o.s.t.Helper()
	stats, err := c.conn.Stats() // since it was asked last
	if err != nil || stats.Drops > 0 {
		c.o.s.t.Fatalf("the capture missed packets: %+v: %v", stats, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		c.o.s.t.Fatalf("the capture failed: %v", c.err)
	}
	c.arrived += int(stats.Packets)
	if c.read < c.arrived {
		return fmt.Errorf("%d of %d packets were read", c.read, c.arrived)
	}
	return nil
}

// Others returns what was seen since the capture began, but connections to these
// addresses: host:port of other connections, and "name …" for each name that was
// asked for. It fails the test when the capture missed a packet or saw no connection to
// any of them.
func (c *Capture) Others(addresses ...string) []string {
	c.o.s.t.Helper()
	c.o.s.Eventually("the capture read what arrived", time.Minute, c.complete)
	c.mu.Lock()
	defer c.mu.Unlock()
	others := maps.Clone(c.seen)
	seen := 0
	for _, a := range addresses { // not each of them: nobody need ask a replica anything
		seen += others[a]
		delete(others, a)
	}
	if seen == 0 {
		c.o.s.t.Errorf("the capture saw no connection to any of %v", addresses)
	}
	return slices.Sorted(maps.Keys(others))
}
