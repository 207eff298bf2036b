package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	idA = strings.Repeat("a", 40)
	idB = strings.Repeat("b", 40)
	idC = strings.Repeat("c", 40)
	idD = strings.Repeat("d", 40)
	idE = strings.Repeat("e", 40)
	idF = strings.Repeat("f", 40)
)

// parse reads rows in which a lone capital letter stands for an ID.
func parse(t *testing.T, text string) []Member {
	t.Helper()
	members, err := ParseNodes(withIDs(text))
	if err != nil {
		t.Fatal(err)
	}
	return members
}

func withIDs(text string) string {
	return strings.NewReplacer("AAAA", idA, "BBBB", idB, "CCCC", idC, "DDDD", idD, "EEEE", idE, "FFFF", idF).Replace(text)
}

func TestAnAddressIsReadWhateverItsForm(t *testing.T) {
	type address struct {
		IP, Hostname, ShardID, NodeName string
		Port, BusPort, TLSPort          int
		Dial                            string
		Dialable                        bool
	}
	shard := strings.Repeat("9", 40)
	for name, tc := range map[string]struct {
		text string
		want address
	}{
		"T-01 IPv6 without brackets": {
			"fd01::85:14:243:18:6379@16379",
			address{IP: "fd01::85:14:243:18", Port: 6379, BusPort: 16379, Dial: "[fd01::85:14:243:18]:6379", Dialable: true},
		},
		"T-01 no bus port": {
			"10.0.0.1:6379",
			address{IP: "10.0.0.1", Port: 6379, BusPort: 16379, Dial: "10.0.0.1:6379", Dialable: true},
		},
		"T-02 no hostname": {
			"10.233.71.37:6379@16379",
			address{IP: "10.233.71.37", Port: 6379, BusPort: 16379, Dial: "10.233.71.37:6379", Dialable: true},
		},
		"T-02 a hostname": {
			"10.233.71.38:6379@16379,my-cluster-1-0.my-cluster.my-app.svc.cluster.local",
			address{IP: "10.233.71.38", Port: 6379, BusPort: 16379, Hostname: "my-cluster-1-0.my-cluster.my-app.svc.cluster.local", Dial: "10.233.71.38:6379", Dialable: true},
		},
		"T-02 an empty hostname": {
			"10.0.0.1:6379@16379,",
			address{IP: "10.0.0.1", Port: 6379, BusPort: 16379, Dial: "10.0.0.1:6379", Dialable: true},
		},
		"T-03 aux fields after an empty hostname": {
			"10.0.0.1:6379@16379,,shard-id=" + shard + ",nodename=my-cluster-0-0,tcp-port=0,tls-port=6379",
			address{IP: "10.0.0.1", Port: 6379, BusPort: 16379, TLSPort: 6379, ShardID: shard, NodeName: "my-cluster-0-0", Dial: "10.0.0.1:6379", Dialable: true},
		},
		"T-03 aux fields in another order, one unknown": {
			"10.0.0.1:6379@16379,h.example.com,tls-port=6379,availability-zone=eu-1a,nodename=n,shard-id=" + shard,
			address{IP: "10.0.0.1", Port: 6379, BusPort: 16379, TLSPort: 6379, Hostname: "h.example.com", ShardID: shard, NodeName: "n", Dial: "10.0.0.1:6379", Dialable: true},
		},
		"T-03 aux fields without a place for the hostname": {
			"10.0.0.1:6379@16379,shard-id=" + shard,
			address{IP: "10.0.0.1", Port: 6379, BusPort: 16379, ShardID: shard, Dial: "10.0.0.1:6379", Dialable: true},
		},
		"an announced client port": {
			"203.0.113.5:30001@16379",
			address{IP: "203.0.113.5", Port: 30001, BusPort: 16379, Dial: "203.0.113.5:30001", Dialable: true},
		},
		"a node that never met anyone": {":6379@16379", address{Port: 6379, BusPort: 16379}},
		"T-04 a lost address":          {":0@0", address{}},
	} {
		t.Run(name, func(t *testing.T) {
			m := parse(t, "AAAA "+tc.text+" master - 0 1428780377665 1 connected 0-5460")[0]
			got := address{IP: m.IP, Hostname: m.Hostname, ShardID: m.ShardID, NodeName: m.NodeName, Port: m.Port, BusPort: m.BusPort, TLSPort: m.TLSPort}
			got.Dial, got.Dialable = m.DialAddress()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if m.Slots.String() != "0-5460" || m.ConfigEpoch != 1 || !m.LinkUp {
				t.Errorf("the rest of the row is wrong: %+v", m)
			}
		})
	}
}

func TestANodeWithoutAddressIsNeverDialled(t *testing.T) {
	m := parse(t, "CCCC 10.0.0.3:6379@16379 master,noaddr - 0 0 3 disconnected")[0]
	if address, ok := m.DialAddress(); ok {
		t.Errorf("got %q", address)
	}
}

// T-06
func TestFlagsAreWholeTokens(t *testing.T) {
	type meaning struct {
		Role                                                         Role
		Myself, PFail, Failed, NoFailover, Handshake, NoAddr, Living bool
	}
	for flags, want := range map[string]meaning{
		"slave,nofailover":      {Role: RoleReplica, NoFailover: true, Living: true},
		"master,fail?":          {Role: RolePrimary, PFail: true},
		"master,fail":           {Role: RolePrimary, Failed: true},
		"myself,slave,fail?":    {Role: RoleReplica, Myself: true, PFail: true},
		"myself,master":         {Role: RolePrimary, Myself: true, Living: true},
		"noflags":               {Living: true},
		"handshake":             {Handshake: true},
		"master,noaddr":         {Role: RolePrimary, NoAddr: true},
		"replica,newfailflag":   {Role: RoleReplica, Living: true},
		"primary":               {Role: RolePrimary, Living: true},
		"master,fail,noaddr":    {Role: RolePrimary, Failed: true, NoAddr: true},
		"slave,fail,nofailover": {Role: RoleReplica, Failed: true, NoFailover: true},
	} {
		t.Run(flags, func(t *testing.T) {
			m := parse(t, "AAAA 10.0.0.1:6379@16379 "+flags+" - 0 0 1 connected")[0]
			got := meaning{m.Role, m.Myself, m.PFail, m.Failed, m.NoFailover, m.Handshake, m.NoAddr, m.SeenAlive()}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if strings.Join(m.Flags, ",") != flags {
				t.Errorf("flags %q", m.Flags)
			}
		})
	}
}

// T-09
func TestMigrationMarkersAreNotOwnedSlots(t *testing.T) {
	importing := parse(t, "BBBB 10.0.0.2:6379@16379 myself,master - 0 0 4 connected [5461-<-AAAA]")[0]
	if !importing.Slots.Empty() || importing.Role != RolePrimary || importing.Migrating != nil {
		t.Errorf("got %+v", importing)
	}
	if diff := cmp.Diff(map[int]string{5461: idA}, importing.Importing); diff != "" {
		t.Errorf("importing (-want +got)\n%s", diff)
	}

	migrating := parse(t, "AAAA 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-5460 5461 [5461->-BBBB] 10000-10001")[0]
	if migrating.Slots.Len() != 5464 || migrating.Slots.String() != "0-5461 10000-10001" || migrating.Importing != nil {
		t.Errorf("got %+v", migrating)
	}
	if diff := cmp.Diff(map[int]string{5461: idB}, migrating.Migrating); diff != "" {
		t.Errorf("migrating (-want +got)\n%s", diff)
	}
}

func TestARowThatBreaksTheGrammarIsAnErrorNotAMissingMember(t *testing.T) {
	const good = "AAAA 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-5460\n"
	for name, row := range map[string]string{
		"too few fields":        "BBBB 10.0.0.2:6379@16379 master - 0 0 1",
		"no port":               "BBBB 10.0.0.2 master - 0 0 1 connected",
		"a port that is text":   "BBBB 10.0.0.2:abc@16379 master - 0 0 1 connected",
		"a port out of range":   "BBBB 10.0.0.2:65536@16379 master - 0 0 1 connected",
		"a bus port of text":    "BBBB 10.0.0.2:6379@x master - 0 0 1 connected",
		"a TLS port of text":    "BBBB 10.0.0.2:6379@16379,,tls-port=x master - 0 0 1 connected",
		"an epoch of text":      "BBBB 10.0.0.2:6379@16379 master - 0 0 x connected",
		"a slot out of range":   "BBBB 10.0.0.2:6379@16379 master - 0 0 1 connected 16384",
		"an unclosed marker":    "BBBB 10.0.0.2:6379@16379 master - 0 0 1 connected [5->-AAAA",
		"an unknown marker":     "BBBB 10.0.0.2:6379@16379 master - 0 0 1 connected [5-AAAA]",
		"a marker without node": "BBBB 10.0.0.2:6379@16379 master - 0 0 1 connected [5->-]",
		"a marker without slot": "BBBB 10.0.0.2:6379@16379 master - 0 0 1 connected [x-<-AAAA]",
	} {
		t.Run(name, func(t *testing.T) {
			members, err := ParseNodes(withIDs(good + row))
			if err == nil {
				t.Fatalf("got %+v", members)
			}
			if !strings.Contains(err.Error(), idB) {
				t.Errorf("error %q doesn't name the row", err)
			}
		})
	}
	if _, err := ParseNodes("\r\n"); err == nil {
		t.Error("a reply without rows is taken for a cluster without nodes")
	}
}

func TestLineEndsMayBeOfEitherKind(t *testing.T) {
	members := parse(t, "AAAA 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0\r\n\r\nBBBB 10.0.0.2:6379@16379 slave AAAA 0 0 1 connected\r\n")
	if len(members) != 2 || members[0].Slots.String() != "0" || members[1].PrimaryID != idA || members[0].PrimaryID != "" {
		t.Errorf("got %+v", members)
	}
}

func FuzzParseNodes(f *testing.F) {
	for _, seed := range []string{
		"AAAA fd01::85:14:243:18:6379@16379 master - 0 1428780377665 1 connected 0-5460",
		"AAAA 10.0.0.1:6379@16379,,shard-id=9,tls-port=6379 myself,master - 0 0 1 connected 0-5460 5461 [5461->-BBBB]",
		"CCCC :0@0 master,noaddr - 1658754833817 1658754833000 3 disconnected 5461-10922",
		"BBBB 10.0.0.2:6379@16379 myself,master - 0 0 4 connected [5461-<-AAAA]\nAAAA 10.0.0.1 x - 0 0 1 c",
	} {
		f.Add(withIDs(seed))
	}
	f.Fuzz(func(t *testing.T, text string) {
		members, err := ParseNodes(text)
		if err != nil {
			return
		}
		if rows := strings.Count(strings.TrimSpace(text), "\n") + 1; len(members) == 0 || len(members) > rows {
			t.Errorf("%d members from %d rows", len(members), rows)
		}
		for _, m := range members {
			if m.ID == "" {
				t.Error("a member has no ID")
			}
			if address, ok := m.DialAddress(); ok && (strings.HasPrefix(address, ":") || strings.HasSuffix(address, ":0")) {
				t.Errorf("dialable address %q", address)
			}
		}
		Merge([]Reply{{Node: "n", ID: members[0].ID, Members: members}}).FirstDifference()
	})
}
