// Package topology turns what nodes say about their cluster into one merged view.
//
// Nodes are identified by the ID that they give themselves (CLUSTER MYID asked at
// the pod's IP), never by an address: addresses are reused, and CLUSTER NODES
// prints what clients are told, which with external access is not where a node
// listens.
package topology

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// Role of a node, as ValkeyNode.status.role spells it.
type Role string

// Values of Role. A node whose row has neither role flag has none.
const (
	RolePrimary Role = "primary"
	RoleReplica Role = "replica"
	RoleUnknown Role = ""
)

// busPortOffset is added to the client port for rows that don't name a bus port.
const busPortOffset = 10000

// Member is one row of a node's CLUSTER NODES.
type Member struct {
	// ID of the node, 40 hex digits.
	ID string
	// IP without brackets and Hostname as clients are told; either may be empty.
	IP, Hostname string
	// ShardID and NodeName are set in rows of nodes.conf only.
	ShardID, NodeName string
	// Port that clients are told. BusPort of the node. TLSPort is set in rows of
	// nodes.conf only.
	Port, BusPort, TLSPort int
	// Flags as printed, one token each.
	Flags []string
	// Role of the node as this viewer sees it.
	Role Role
	// PrimaryID of a replica, else empty.
	PrimaryID string
	// ConfigEpoch of the node; of a replica, its primary's.
	ConfigEpoch uint64
	// LinkUp is whether the viewer's bus link to the node is connected.
	LinkUp bool
	// Slots that the viewer takes the node to own. Slots on the move belong to
	// their source until they have moved.
	Slots slots.Set
	// Migrating and Importing hold the other node's ID by slot. Servers print
	// them on the row of myself only.
	Migrating, Importing map[int]string

	// Myself is the row of the viewer.
	Myself bool
	// PFail is the viewer's own suspicion, Failed the agreement of a majority.
	PFail, Failed bool
	// Handshake rows carry a transient ID and are not members.
	Handshake bool
	// NoAddr rows have lost their address.
	NoAddr bool
	// NoFailover replicas don't stand for election.
	NoFailover bool
}

// DialAddress is host:port as clients are told it, an IPv6 address in brackets.
// It is false for a row without a usable address. The manager itself dials pod
// IPs, see the package comment.
func (m Member) DialAddress() (string, bool) {
	if m.NoAddr || m.IP == "" || m.Port == 0 {
		return "", false
	}
	return net.JoinHostPort(m.IP, strconv.Itoa(m.Port)), true
}

// SeenAlive is whether the viewer has a working link to the node and no suspicion.
func (m Member) SeenAlive() bool {
	if m.Handshake || m.NoAddr || m.PFail || m.Failed {
		return false
	}
	return m.Myself || m.LinkUp
}

// ParseNodes reads the reply of CLUSTER NODES:
//
//	id ip:port@cport[,hostname[,aux=val]*] flags primary-id ping pong epoch link [slots...]
//
// Unknown flags and aux fields are kept or ignored, so that a newer server can be
// read; a row that breaks the grammar is an error, since a member that is silently
// missing looks like a member to be forgotten.
func ParseNodes(text string) ([]Member, error) {
	var members []Member
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		m, err := parseMember(fields)
		if err != nil {
			return nil, fmt.Errorf("read CLUSTER NODES row %q: %w", strings.TrimSpace(line), err)
		}
		members = append(members, m)
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("read CLUSTER NODES: the reply has no rows")
	}
	return members, nil
}

func parseMember(fields []string) (Member, error) {
	if len(fields) < 8 {
		return Member{}, fmt.Errorf("it has %d fields, want at least 8", len(fields))
	}
	m := Member{ID: fields[0]}
	if err := m.setAddress(fields[1]); err != nil {
		return Member{}, err
	}
	m.setFlags(fields[2])
	if primary := fields[3]; primary != "-" {
		m.PrimaryID = primary
	}
	epoch, err := strconv.ParseUint(fields[6], 10, 64)
	if err != nil {
		return Member{}, fmt.Errorf("config epoch: %w", err)
	}
	m.ConfigEpoch = epoch
	m.LinkUp = fields[7] == "connected"
	if err := m.setSlots(fields[8:]); err != nil {
		return Member{}, err
	}
	return m, nil
}

// setAddress reads ip:port@cport[,hostname[,aux=val]*]. The IP may hold colons and
// may be empty, as may the hostname before aux fields.
func (m *Member) setAddress(s string) error {
	parts := strings.Split(s, ",")
	endpoint, bus, hasBus := strings.Cut(parts[0], "@")
	colon := strings.LastIndexByte(endpoint, ':')
	if colon < 0 {
		return fmt.Errorf("address %q has no port", parts[0])
	}
	m.IP = strings.TrimSuffix(strings.TrimPrefix(endpoint[:colon], "["), "]")
	port, err := parsePort(endpoint[colon+1:])
	if err != nil {
		return fmt.Errorf("address %q: %w", parts[0], err)
	}
	m.Port, m.BusPort = port, port+busPortOffset
	if hasBus {
		if m.BusPort, err = parsePort(bus); err != nil {
			return fmt.Errorf("bus port of %q: %w", parts[0], err)
		}
	}
	for i, part := range parts[1:] {
		key, value, isAux := strings.Cut(part, "=")
		switch {
		case !isAux && i == 0:
			m.Hostname = part
		case key == "shard-id":
			m.ShardID = value
		case key == "nodename":
			m.NodeName = value
		case key == "tls-port":
			if m.TLSPort, err = parsePort(value); err != nil {
				return fmt.Errorf("tls-port of %q: %w", s, err)
			}
		}
	}
	return nil
}

func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no port", s)
	}
	return int(n), nil
}

// setFlags compares whole tokens: the names contain one another (fail, fail?,
// nofailover).
func (m *Member) setFlags(s string) {
	m.Flags = strings.Split(s, ",")
	has := func(flag string) bool { return slices.Contains(m.Flags, flag) }
	switch {
	case has("master"), has("primary"):
		m.Role = RolePrimary
	case has("slave"), has("replica"):
		m.Role = RoleReplica
	}
	m.Myself = has("myself")
	m.PFail = has("fail?")
	m.Failed = has("fail")
	m.Handshake = has("handshake")
	m.NoAddr = has("noaddr")
	m.NoFailover = has("nofailover")
}

// setSlots reads owned slots and the markers [slot->-id] and [slot-<-id], which
// say nothing about ownership.
func (m *Member) setSlots(fields []string) error {
	ranges := make([]slots.Range, 0, len(fields))
	for _, field := range fields {
		if strings.HasPrefix(field, "[") {
			if err := m.setMarker(field); err != nil {
				return err
			}
			continue
		}
		r, err := slots.ParseRange(field)
		if err != nil {
			return err
		}
		ranges = append(ranges, r)
	}
	m.Slots = slots.FromRanges(ranges...)
	return nil
}

func (m *Member) setMarker(field string) error {
	text, closed := strings.CutSuffix(field[1:], "]")
	target := &m.Migrating
	slotText, id, found := strings.Cut(text, "->-")
	if !found {
		target = &m.Importing
		slotText, id, found = strings.Cut(text, "-<-")
	}
	if !closed || !found || id == "" {
		return fmt.Errorf("slot marker %q is neither [slot->-id] nor [slot-<-id]", field)
	}
	slot, err := slots.ParseSlot(slotText)
	if err != nil {
		return fmt.Errorf("slot marker %q: %w", field, err)
	}
	if *target == nil {
		*target = map[int]string{}
	}
	(*target)[int(slot)] = id
	return nil
}
