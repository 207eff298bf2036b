package announce

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

const domain = "valkey.example.com"

func names() *v1alpha1.ExternalAccess {
	return &v1alpha1.ExternalAccess{Enabled: true, Domain: domain, PreferredEndpointType: v1alpha1.EndpointHostname}
}

// fleet is a cluster whose nodes hear of each other's announcements later, in any
// order, as servers do.
type fleet struct {
	tls     bool
	random  *rand.Rand
	members []Member
	tables  []map[string]Row
}

// newFleet returns nodes, two of each shard, that announce what a cluster without external access does.
func newFleet(tls bool, shards int32, seed uint64) *fleet {
	f := &fleet{tls: tls, random: rand.New(rand.NewPCG(seed, 7))}
	for shard := range shards {
		for index := range int32(2) {
			n := len(f.members)
			m := Member{
				Name: fmt.Sprintf("c-%05x", n), ID: fmt.Sprintf("%040x", n), PodIP: fmt.Sprintf("10.0.0.%d", n+1),
				ShardIndex: shard, Exposed: true, Port: 30000 + shard*10 + index, Reachable: true,
			}
			m.PodDNSName = m.Name + ".c.n.svc.cluster.local"
			v := For(Input{TLS: tls, NodeName: m.Name, PodDNSName: m.PodDNSName, ShardIndex: shard})
			m.Now = &v
			f.members = append(f.members, m)
		}
	}
	for range f.members {
		table := map[string]Row{}
		for _, m := range f.members {
			table[m.ID] = row(*m.Now)
		}
		f.tables = append(f.tables, table)
	}
	return f
}

// gossip tells some node of what some other announces.
func (f *fleet) gossip() {
	viewer, of := f.random.IntN(len(f.members)), f.members[f.random.IntN(len(f.members))]
	f.tables[viewer][of.ID] = row(*of.Now)
}

func (f *fleet) situation(external *v1alpha1.ExternalAccess) Situation {
	s := Situation{TLS: f.tls, External: external, Quiet: time.Minute}
	for i, m := range f.members {
		v := *m.Now
		m.Now = &v
		m.Table = map[string]Row{}
		for id, r := range f.tables[i] {
			m.Table[id] = r
		}
		s.Members = append(s.Members, m)
	}
	return s
}

// set gives a node what it is to announce; it sees its own values at once.
func (f *fleet) set(name string, v Values) {
	for i := range f.members {
		if f.members[i].Name == name {
			f.members[i].Now = &v
			f.tables[i][f.members[i].ID] = row(v)
		}
	}
}

// wrong returns what is wrong with what clients are told by any node.
func (f *fleet) wrong() string {
	for i, viewer := range f.members {
		for _, m := range f.members {
			listed := f.tables[i][m.ID]
			host := m.PodIP
			if viewer.Now.EndpointType == v1alpha1.EndpointHostname {
				host = listed.Hostname
			}
			outsideName := strings.HasSuffix(host, "."+domain)
			switch {
			case host == "":
				return fmt.Sprintf("%s gives ? for %s", viewer.Name, m.Name)
			case outsideName && listed.Port != m.Port && m.Port != 0:
				return fmt.Sprintf("%s gives %s with port %d for %s", viewer.Name, host, listed.Port, m.Name)
			case !outsideName && listed.Port != ownPort:
				return fmt.Sprintf("%s gives %s with port %d for %s", viewer.Name, host, listed.Port, m.Name)
			}
		}
	}
	return ""
}

// lead carries out steps until all is done, while gossip comes as it likes. It
// returns what went wrong on the way.
func (f *fleet) lead(s func() Situation, next func(Situation) Step) string {
	for range 20_000 {
		step := next(s())
		if step.Done() {
			return ""
		}
		// The nodes of one step are told one after the other, and clients ask meanwhile.
		for _, m := range f.members {
			v, ok := step.Set[m.Name]
			if !ok {
				continue
			}
			f.set(m.Name, v)
			if wrong := f.wrong(); wrong != "" {
				return fmt.Sprintf("after %q: %s", step.Reason, wrong)
			}
			if f.random.IntN(2) == 0 {
				f.gossip()
			}
		}
		f.gossip()
		if wrong := f.wrong(); wrong != "" {
			return wrong
		}
	}
	return "it never ends: " + next(s()).Waiting
}

func TestClientsNeverSeeAWrongAddressOnTheWayThereAndBack(t *testing.T) {
	ip := names()
	ip.PreferredEndpointType = v1alpha1.EndpointIP
	other := names()
	other.HostnamePrefix = "cache"
	wishes := map[string]*v1alpha1.ExternalAccess{"names": names(), "addresses": ip, "another prefix": other, "nothing": nil, "only enabled": {Enabled: true}}
	order := []string{"names", "addresses", "another prefix", "nothing", "only enabled", "another prefix", "names", "nothing", "addresses", "names", "only enabled"}
	for _, tls := range []bool{false, true} {
		for seed := range uint64(30) {
			f := newFleet(tls, 3, seed)
			for _, wish := range order {
				situation := func() Situation { return f.situation(wishes[wish]) }
				if wrong := f.lead(situation, Next); wrong != "" {
					t.Fatalf("TLS %t, seed %d, towards %s: %s", tls, seed, wish, wrong)
				}
				for i, m := range f.members {
					in := Input{TLS: tls, External: wishes[wish], NodeName: m.Name, PodDNSName: m.PodDNSName, ShardIndex: m.ShardIndex, ExternalPort: m.Port}
					if want := For(in); *m.Now != want {
						t.Fatalf("TLS %t, towards %s: node %d announces %+v, want %+v", tls, wish, i, *m.Now, want)
					}
				}
			}
		}
	}
}

// A wish that changes in the middle of the way is turned to from wherever it is.
func TestTheWayMayBeLeftAtAnyStep(t *testing.T) {
	for _, tls := range []bool{false, true} {
		for seed := range uint64(200) {
			f := newFleet(tls, 2, seed)
			calls, wish := 0, names()
			situation := func() Situation {
				calls++
				if calls < 300 && f.random.IntN(12) == 0 {
					wish = []*v1alpha1.ExternalAccess{nil, names(), {Enabled: true}, {Enabled: true, Domain: domain}}[f.random.IntN(4)]
				}
				return f.situation(wish)
			}
			if wrong := f.lead(situation, Next); wrong != "" {
				t.Fatalf("TLS %t, seed %d: %s", tls, seed, wrong)
			}
		}
	}
}

// The checks of these tests notice steps in the wrong order.
func TestSwappedStepsAreNoticed(t *testing.T) {
	direct := func(s Situation) Step {
		set := map[string]Values{}
		for _, m := range s.Members {
			if want := s.final(m, wantsNames(s.External)); *m.Now != want {
				set[m.Name] = want
			}
		}
		return s.step(set, "everything at once")
	}
	unseen := func(s Situation) Step {
		for i := range s.Members { // as if everybody had seen everything at once
			for _, m := range s.Members {
				s.Members[i].Table[m.ID] = row(*m.Now)
			}
		}
		return Next(s)
	}
	for name, next := range map[string]func(Situation) Step{"all at once": direct, "without waiting": unseen} {
		noticed := false
		for seed := range uint64(20) {
			f := newFleet(false, 3, seed)
			noticed = noticed || f.lead(func() Situation { return f.situation(names()) }, next) != ""
		}
		if !noticed {
			t.Errorf("%s: nothing was noticed", name)
		}
	}
}

func TestNamesWaitUntilEveryNodeCanBeReachedThere(t *testing.T) {
	for _, tls := range []bool{false, true} {
		f := newFleet(tls, 2, 1)
		pending := func() Situation {
			s := f.situation(names())
			s.Pending = "shard 1 has no address"
			return s
		}
		if wrong := f.lead(pending, Next); wrong != "" {
			t.Fatal(wrong)
		}
		for _, m := range f.members {
			if m.outside() {
				t.Errorf("TLS %t: %s announces %+v before the outside is ready", tls, m.Name, *m.Now)
			}
		}
		if wrong := f.lead(func() Situation { return f.situation(names()) }, Next); wrong != "" {
			t.Fatal(wrong)
		}
		// Once given, names stay when an address is pending again; a change of what they
		// lead to takes them back.
		if step := Next(pending()); !step.Done() {
			t.Errorf("TLS %t: pending again: %+v", tls, step)
		}
		withdraw := func() Situation {
			s := f.situation(names())
			s.Withdraw = "the type of the Services changes"
			return s
		}
		if wrong := f.lead(withdraw, Next); wrong != "" {
			t.Fatal(wrong)
		}
		if s := withdraw(); s.InForce() || !s.Withdrawn() {
			t.Errorf("TLS %t: outside names are in force after they were withdrawn", tls)
		}
		// What only one node still lists, its clients are still given.
		one := withdraw()
		one.Members[0].Table[one.Members[2].ID] = Row{Hostname: "shard-1." + domain, Port: 30010}
		if one.Withdrawn() {
			t.Errorf("TLS %t: withdrawn although a node lists an outside port", tls)
		}
	}
}

func TestNamesWaitForNodesThatTheServicesCantFind(t *testing.T) {
	for _, tls := range []bool{false, true} {
		f := newFleet(tls, 1, 1)
		f.members[1].Exposed = false
		if wrong := f.lead(func() Situation { return f.situation(names()) }, Next); wrong != "" {
			t.Fatal(wrong)
		}
		if s := f.situation(names()); s.InForce() {
			t.Errorf("TLS %t: names are given while a node has no port outside", tls)
		}
	}
}

func TestANodeThatDoesNotAnswerOrIsGoneHoldsWhatWouldShowIt(t *testing.T) {
	f := newFleet(false, 2, 1)
	f.members[3].Reachable = false
	situation := func() Situation {
		s := f.situation(names())
		s.Members[3].Table = nil
		return s
	}
	for range 50 {
		step := Next(situation())
		for name, v := range step.Set {
			if v.EndpointType == v1alpha1.EndpointHostname {
				t.Fatalf("%s is told to give names although %s can't announce one: %s", name, f.members[3].Name, step.Reason)
			}
			f.set(name, v)
		}
		f.gossip()
	}
	if step := Next(situation()); !strings.Contains(step.Waiting, f.members[3].Name) {
		t.Errorf("waiting %q, want the node that does not answer in it", step.Waiting)
	}

	f = newFleet(false, 2, 1)
	gone := func() Situation {
		s := f.situation(names())
		for i := range s.Members {
			s.Members[i].Table["gone"] = Row{Port: ownPort}
		}
		return s
	}
	for range 500 {
		for name, v := range Next(gone()).Set {
			f.set(name, v)
		}
		f.gossip()
	}
	if step := Next(gone()); !strings.Contains(step.Waiting, "gone") {
		t.Errorf("waiting %q, want the member that is gone in it", step.Waiting)
	}
	for _, m := range f.members {
		if m.Now.EndpointType != v1alpha1.EndpointIP {
			t.Errorf("%s gives names while it lists a member without one", m.Name)
		}
	}
}

// A pod that starts in the middle of the way fits the step that the others are at.
func TestANewNodeFitsTheOthersAtEveryStep(t *testing.T) {
	for _, tls := range []bool{false, true} {
		for seed := range uint64(60) {
			f := newFleet(tls, 2, seed)
			newcomer := f.members[3]
			f.members, f.tables = f.members[:3], f.tables[:3]
			for i := range f.tables {
				delete(f.tables[i], newcomer.ID)
			}
			wish, starts := names(), 1+f.random.IntN(120)
			calls := 0
			situation := func() Situation {
				calls++
				if calls == 60 {
					wish = nil
				}
				if calls == starts {
					f.join(newcomer, wish)
				}
				return f.situation(wish)
			}
			if wrong := f.lead(situation, Next); wrong != "" {
				t.Fatalf("TLS %t, seed %d, joins at step %d: %s", tls, seed, starts, wrong)
			}
			wish = names()
			if wrong := f.lead(situation, Next); wrong != "" {
				t.Fatalf("TLS %t, seed %d, joined at step %d: %s", tls, seed, starts, wrong)
			}
		}
	}
}

// join adds a node; it is listed once its announcement is known, as one in
// handshake is not shown to clients.
func (f *fleet) join(m Member, wish *v1alpha1.ExternalAccess) {
	var siblings []v1alpha1.Announcement
	for _, other := range f.members {
		siblings = append(siblings, other.Now.Announcement())
	}
	v := Moment(Input{TLS: f.tls, External: wish, NodeName: m.Name, PodDNSName: m.PodDNSName, ShardIndex: m.ShardIndex, ExternalPort: m.Port}, siblings)
	m.Now = &v
	f.members = append(f.members, m)
	table := map[string]Row{}
	for i, other := range f.members {
		table[other.ID] = row(*other.Now)
		if i < len(f.tables) {
			f.tables[i][m.ID] = row(v)
		}
	}
	f.tables = append(f.tables, table)
}

// A message may come late and undo what was seen: the type waits until nothing is under
// way any more.
func TestTheTypeWaitsUntilTablesHaveSettled(t *testing.T) {
	bridge := func(f *fleet) {
		for _, m := range f.members {
			v := *m.Now
			v.Hostname, v.HumanNodename = m.PodIP, m.Name
			f.set(m.Name, v)
		}
		for i := range f.members {
			for _, m := range f.members {
				f.tables[i][m.ID] = row(*m.Now)
			}
		}
	}
	f := newFleet(false, 2, 1)
	bridge(f)
	s := f.situation(names())
	s.Quiet = time.Second
	if step := Next(s); len(step.Set) > 0 || !s.Agreed() {
		t.Errorf("the type changes at once: %+v, agreed %t", step, s.Agreed())
	}
	s.Quiet = settled
	if step := Next(s); len(step.Set) != 4 {
		t.Errorf("the type does not change: %+v", step)
	}
	s.Members[0].Table[s.Members[1].ID] = Row{Port: ownPort}
	if s.Agreed() {
		t.Error("agreed although a table is behind")
	}
}

func TestAnswersOfAServerAreRead(t *testing.T) {
	for _, tls := range []bool{false, true} {
		want := Values{Hostname: "a.b", EndpointType: v1alpha1.EndpointHostname, ClientPort: 31000, HumanNodename: "c-1"}
		answer := map[string]string{}
		for _, a := range want.Assignments(tls) {
			answer[a[0]] = a[1]
		}
		got, ok := Read(answer, tls)
		if !ok || got != want {
			t.Errorf("TLS %t: read %+v, %t", tls, got, ok)
		}
		delete(answer, directiveHostname)
		if _, ok := Read(answer, tls); ok {
			t.Errorf("TLS %t: an answer without a hostname was read", tls)
		}
	}
}
