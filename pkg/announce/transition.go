package announce

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// ownPort is what a node that announces no port is listed with.
const ownPort = 6379

// settled is how long tables have to agree before what nodes give to clients is turned
// from names to addresses or back. Two nodes talk over two connections: a message with
// what was announced before may come after the one with what is announced now, and undo
// it until the next.
const settled = 2 * time.Second

// Row is what one node's table says of a member.
type Row struct {
	Hostname string
	// Port that clients are given; the node's own when it announces none.
	Port int32
}

// Member is one node with what it announces now, and what it sees of the others.
type Member struct {
	Name string
	// ID by which tables list the node; empty while it isn't known.
	ID string
	// PodIP and PodDNSName are its addresses inside.
	PodIP, PodDNSName string
	ShardIndex        int32
	// Exposed is whether the node was made with external access: only then does the
	// shard's Service find its port.
	Exposed bool
	// Port at which clients outside reach the node; 0 while that isn't known.
	Port int32
	// Now is what the node announces: by its own word, or as its configuration was
	// written if it has not been asked. Nil is unknown.
	Now *Values
	// Reachable nodes can be told something else.
	Reachable bool
	// Table is the node's own table, by ID; nil if it was not asked.
	Table map[string]Row
}

// Situation is everything that the next step depends on.
type Situation struct {
	TLS bool
	// External is spec.externalAccess; nil and not enabled are the same.
	External *v1alpha1.ExternalAccess
	// Pending says why clients can't be directed to the outside names yet; empty when
	// every node can be reached there. Names that are in force already stay.
	Pending string
	// Withdraw says why outside names are taken back although they are wished: what
	// they lead to is about to change. Empty for no reason.
	Withdraw string
	// Quiet is for how long Agreed has held.
	Quiet time.Duration
	// Members are all nodes that run or will; dead ones are left out.
	Members []Member
}

// Step is what to do next.
type Step struct {
	// Set holds what nodes are to announce from now on, by node name. All of one step
	// can go together, each node's values in one command.
	Set map[string]Values
	// Reason of Set in words.
	Reason string
	// Waiting says what must be seen before the next step.
	Waiting string
}

// Done reports whether every node announces what is wished, and all know it.
func (s Step) Done() bool { return len(s.Set) == 0 && s.Waiting == "" }

// Next returns the next step towards the wished announcement, such that clients at
// no moment get a name that isn't announced, or an address with a port that belongs
// to the other one.
//
// Name and port of a node travel in one gossip message, so they may change together.
// The endpoint type is each node's own and holds for all that it lists, so on a
// plaintext cluster it changes only while names and addresses mean the same: every
// node announces its own address as its name, everybody has seen that, then the type
// changes, then name and port. The way back is the same. TLS clusters give names all
// the time.
func Next(s Situation) Step {
	if s.TLS {
		return s.encrypted()
	}
	if s.directed() {
		return s.forth()
	}
	return s.back()
}

// directed reports whether clients are to be led to the outside names now.
func (s Situation) directed() bool {
	if !wantsNames(s.External) || s.Withdraw != "" || s.Pending != "" && !s.InForce() {
		return false
	}
	for _, m := range s.Members {
		if !m.Exposed {
			return false
		}
	}
	return true
}

// InForce reports whether some node gives its outside name and port to clients.
func (s Situation) InForce() bool {
	for _, m := range s.Members {
		if m.outside() {
			return true
		}
	}
	return false
}

// Agreed reports whether every table has what the members announce.
func (s Situation) Agreed() bool {
	return !slices.ContainsFunc(s.Members, func(m Member) bool { return s.behind(m) != "" })
}

// Withdrawn reports whether no client is given the way to any node from outside: no
// node announces it, and none lists it.
func (s Situation) Withdrawn() bool {
	for _, m := range s.Members {
		if m.Now == nil || m.outside() {
			return false
		}
	}
	for _, viewer := range s.Members {
		for _, m := range s.Members {
			seen, ok := viewer.Table[m.ID]
			if !ok {
				continue
			}
			named := viewer.Now.EndpointType == v1alpha1.EndpointHostname
			if seen.Port != ownPort || named && seen.Hostname != m.PodIP && seen.Hostname != m.PodDNSName {
				return false
			}
		}
	}
	return true
}

// wantsNames reports whether clients are to be directed to the outside at all.
func wantsNames(external *v1alpha1.ExternalAccess) bool {
	return external != nil && external.Enabled && external.Domain != "" && external.PreferredEndpointType == v1alpha1.EndpointHostname
}

// encrypted is the only step of a TLS cluster: each node's name and port at once.
func (s Situation) encrypted() Step {
	directed := s.directed()
	set := map[string]Values{}
	for _, m := range s.Members {
		if directed && m.Port == 0 && m.outside() {
			continue // its port is being looked for
		}
		if want := s.final(m, directed); m.differs(want) {
			set[m.Name] = want
		}
	}
	return s.step(set, reasonFor(directed))
}

func reasonFor(directed bool) string {
	if directed {
		return "clients are directed to the outside names"
	}
	return "clients are directed to the addresses inside"
}

// forth leads a plaintext cluster to names.
func (s Situation) forth() Step {
	set := map[string]Values{}
	for _, m := range s.Members {
		if m.Now == nil || !m.outside() && !m.bridged() {
			set[m.Name] = s.bridge(m)
		}
	}
	if len(set) > 0 {
		return s.step(set, "nodes announce their own addresses as their names")
	}
	for _, m := range s.Members {
		if m.Now.EndpointType == v1alpha1.EndpointHostname {
			continue
		}
		if why := s.unready(m); why != "" {
			return Step{Waiting: why}
		}
		v := *m.Now
		v.EndpointType, v.HumanNodename = v1alpha1.EndpointHostname, s.nodename(m)
		set[m.Name] = v
	}
	if len(set) > 0 {
		return s.step(set, "nodes give names to clients, which are their addresses")
	}
	for _, m := range s.Members {
		if m.Port == 0 {
			continue
		}
		if want := s.final(m, true); m.differs(want) {
			set[m.Name] = want
		}
	}
	return s.step(set, reasonFor(true))
}

// back leads a plaintext cluster to addresses.
func (s Situation) back() Step {
	set := map[string]Values{}
	for _, m := range s.Members {
		if m.Now == nil {
			return Step{Waiting: fmt.Sprintf("node %s has not started yet", m.Name)}
		}
		if m.outside() {
			v := s.bridge(m)
			v.EndpointType = m.Now.EndpointType
			set[m.Name] = v
		}
	}
	if len(set) > 0 {
		return s.step(set, "nodes announce their own addresses in place of the outside names")
	}
	for _, m := range s.Members {
		if m.Now.EndpointType != v1alpha1.EndpointHostname {
			continue
		}
		if why := s.portsSeen(m); why != "" {
			return Step{Waiting: why}
		}
		v := *m.Now
		v.EndpointType, v.HumanNodename = v1alpha1.EndpointIP, s.nodename(m)
		set[m.Name] = v
	}
	if len(set) > 0 {
		return s.step(set, "nodes give addresses to clients")
	}
	for _, m := range s.Members {
		if want := s.final(m, false); m.differs(want) {
			set[m.Name] = want
		}
	}
	return s.step(set, "names are as wished")
}

// step leaves out the nodes that can't be told now. While there is nothing to tell
// to anybody else it waits for them, and for everybody to have seen what was told.
func (s Situation) step(set map[string]Values, reason string) Step {
	var absent string
	for _, m := range s.Members {
		if _, ok := set[m.Name]; ok && !m.Reachable {
			delete(set, m.Name)
			absent = fmt.Sprintf("node %s does not answer and is still to be told what it announces", m.Name)
		}
	}
	switch {
	case len(set) > 0:
		return Step{Set: set, Reason: reason}
	case absent != "":
		return Step{Waiting: absent}
	}
	for _, m := range s.Members {
		if why := s.behind(m); why != "" {
			return Step{Waiting: why}
		}
	}
	return Step{}
}

// final is what a node announces in the end.
func (s Situation) final(m Member, directed bool) Values {
	in := Input{
		TLS: s.TLS, External: s.External, NodeName: m.Name, PodDNSName: m.PodDNSName, ShardIndex: m.ShardIndex,
	}
	if directed {
		in.ExternalPort = m.Port
	}
	return For(in)
}

// bridge is a name that means the same as the node's address.
func (s Situation) bridge(m Member) Values {
	v := Values{Hostname: m.PodDNSName, EndpointType: v1alpha1.EndpointIP, HumanNodename: s.nodename(m)}
	// The server takes no colons in a name.
	if addr, err := netip.ParseAddr(m.PodIP); err == nil && addr.Is4() {
		v.Hostname = m.PodIP
	}
	if m.Now != nil && m.Now.EndpointType != "" {
		v.EndpointType = m.Now.EndpointType
	}
	return v
}

func (s Situation) nodename(m Member) string {
	if s.External == nil || !s.External.Enabled {
		return ""
	}
	return m.Name
}

// bridged reports whether a node's name means its own address.
func (m Member) bridged() bool {
	return m.Now != nil && m.Now.ClientPort == 0 && m.Now.Hostname != "" &&
		(m.Now.Hostname == m.PodIP || m.Now.Hostname == m.PodDNSName)
}

// outside reports whether a node announces the way to it from outside.
func (m Member) outside() bool { return m.Now != nil && m.Now.ClientPort != 0 }

// differs compares all that a node has told; one that was not asked says nothing of
// its readable name.
func (m Member) differs(want Values) bool {
	if m.Now == nil {
		return true
	}
	now := *m.Now
	if !m.Reachable {
		now.HumanNodename = want.HumanNodename
	}
	return now != want
}

// row is how a node that announces v is listed.
func row(v Values) Row {
	if v.ClientPort == 0 {
		return Row{Hostname: v.Hostname, Port: ownPort}
	}
	return Row{Hostname: v.Hostname, Port: v.ClientPort}
}

// behind says of which member a node's table does not yet have what it announces.
func (s Situation) behind(viewer Member) string {
	if viewer.Table == nil {
		return ""
	}
	for _, m := range s.Members {
		seen, ok := viewer.Table[m.ID]
		if ok && m.Now != nil && seen != row(*m.Now) {
			return fmt.Sprintf("node %s has not yet seen what node %s announces", viewer.Name, m.Name)
		}
	}
	return ""
}

// unready says why a node must not give names to clients yet: some member that it
// lists would appear without one, or with a name that goes with another port.
func (s Situation) unready(viewer Member) string {
	if viewer.Table == nil {
		return fmt.Sprintf("node %s does not answer and still gives addresses to clients", viewer.Name)
	}
	if why := s.stranger(viewer); why != "" {
		return why
	}
	return s.unsettled(viewer)
}

// unsettled says that a table does not have what is announced, or that it has not been
// so for long enough.
func (s Situation) unsettled(viewer Member) string {
	if why := s.behind(viewer); why != "" {
		return why
	}
	if s.Quiet < settled {
		return fmt.Sprintf("what nodes announce has to be known everywhere for %s", settled)
	}
	return ""
}

// stranger names a member of a node's table that no node is: it announces what it
// announced last, and nobody can change that.
func (s Situation) stranger(viewer Member) string {
	for _, id := range slices.Sorted(maps.Keys(viewer.Table)) {
		if !slices.ContainsFunc(s.Members, func(m Member) bool { return m.ID == id }) {
			return fmt.Sprintf("node %s still lists member %s, which is gone", viewer.Name, id)
		}
	}
	return ""
}

// portsSeen says why a node must not give addresses to clients yet: it lists a
// member with a port of the outside.
func (s Situation) portsSeen(viewer Member) string {
	if viewer.Table == nil {
		return fmt.Sprintf("node %s does not answer and still gives names to clients", viewer.Name)
	}
	for _, id := range slices.Sorted(maps.Keys(viewer.Table)) {
		if r := viewer.Table[id]; r.Port != ownPort {
			return fmt.Sprintf("node %s still lists port %d, which goes with an outside name", viewer.Name, r.Port)
		}
	}
	return s.unsettled(viewer)
}
