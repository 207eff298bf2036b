package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func crlf(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n" }

func TestClusterInfoIsRead(t *testing.T) {
	got, err := ParseClusterInfo(crlf("cluster_state:ok", "cluster_slots_assigned:16384", "cluster_slots_ok:16384",
		"cluster_known_nodes:2", "cluster_size:1", "cluster_current_epoch:18446744073709551615", "cluster_my_epoch:7", "something_new:x"))
	if err != nil {
		t.Fatal(err)
	}
	want := ClusterInfo{State: StateOK, SlotsAssigned: 16384, KnownNodes: 2, Size: 1, CurrentEpoch: 1<<64 - 1, MyEpoch: 7}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestClusterInfoWithoutStateOrWithTextForNumbersIsAnError(t *testing.T) {
	for _, text := range []string{
		"", "cluster_size:1", "ERR unknown command",
		crlf("cluster_state:ok", "cluster_size:many"),
		crlf("cluster_state:ok", "cluster_my_epoch:-1"),
	} {
		if got, err := ParseClusterInfo(text); err == nil {
			t.Errorf("%q gives %+v", text, got)
		}
	}
}

func TestReplicationOfAPrimaryIsRead(t *testing.T) {
	got, err := ParseReplication(crlf("# Replication", "role:master", "connected_slaves:2",
		"slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=1,type=replica",
		"slave1:ip=fd01::85:14,port=6379,state=wait_bgsave,offset=0,lag=0,type=replica",
		"master_failover_state:no-failover", "master_repl_offset:28"))
	if err != nil {
		t.Fatal(err)
	}
	want := Replication{Role: RolePrimary, Offset: 28, LinkDownSeconds: -1, Replicas: []ReplicaLink{
		{IP: "10.0.0.2", Port: 6379, State: "online", Offset: 14, Lag: 1},
		{IP: "fd01::85:14", Port: 6379, State: "wait_bgsave"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// U-03 and the measurements of a replica that never synced.
func TestOnlyASyncedReplicaIsInSyncAndOnlyAWholeCopyMayBePromoted(t *testing.T) {
	replica := func(lines ...string) string {
		return crlf(append([]string{"role:slave", "master_host:10.0.0.1", "master_port:6379"}, lines...)...)
	}
	for name, tc := range map[string]struct {
		text            string
		inSync, hasCopy bool
	}{
		"link up, no sync":                    {replica("master_link_status:up", "master_sync_in_progress:0", "slave_repl_offset:14"), true, true},
		"link down, no sync":                  {replica("master_link_status:down", "master_sync_in_progress:0"), false, false},
		"link up, sync running":               {replica("master_link_status:up", "master_sync_in_progress:1"), false, false},
		"never synced, primary gone":          {replica("master_link_status:down", "master_sync_in_progress:0", "slave_repl_offset:1", "master_link_down_since_seconds:-1"), false, false},
		"first sync running":                  {replica("master_link_status:down", "master_sync_in_progress:1", "slave_repl_offset:1", "master_link_down_since_seconds:-1"), false, false},
		"synced, primary gone":                {replica("master_link_status:down", "master_sync_in_progress:0", "slave_repl_offset:900", "master_link_down_since_seconds:3"), false, true},
		"synced, primary gone this second":    {replica("master_link_status:down", "master_sync_in_progress:0", "slave_repl_offset:900", "master_link_down_since_seconds:0"), false, true},
		"synced once, now in a new full sync": {replica("master_link_status:down", "master_sync_in_progress:1", "master_link_down_since_seconds:3"), false, false},
		"a primary":                           {crlf("role:master", "connected_slaves:0", "master_repl_offset:900"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseReplication(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if r.InSync() != tc.inSync || r.HasCopy() != tc.hasCopy {
				t.Errorf("InSync %v, HasCopy %v, want %v, %v: %+v", r.InSync(), r.HasCopy(), tc.inSync, tc.hasCopy, r)
			}
		})
	}
}

func TestTheLinkOfAReplicaIsRead(t *testing.T) {
	got, err := ParseReplication(crlf("role:slave", "master_host:fd01::1", "master_port:6379", "master_link_status:down",
		"master_sync_in_progress:1", "slave_read_repl_offset:90", "slave_repl_offset:88", "master_link_down_since_seconds:-1", "connected_slaves:0", "master_repl_offset:77"))
	if err != nil {
		t.Fatal(err)
	}
	want := Replication{Role: RoleReplica, PrimaryHost: "fd01::1", PrimaryPort: 6379, SyncInProgress: true, HasLinkDownSeconds: true, LinkDownSeconds: -1, Offset: 88}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReplicationThatCannotBeReadIsAnError(t *testing.T) {
	for _, text := range []string{
		"", "role:sentinel", crlf("role:slave", "master_port:x"),
		crlf("role:master", "connected_slaves:1", "slave0:port=1,state=online"),
		crlf("role:master", "connected_slaves:1", "slave0:ip=10.0.0.1,port=1,state=online,offset=x"),
	} {
		if got, err := ParseReplication(text); err == nil {
			t.Errorf("%q gives %+v", text, got)
		}
	}
}

func TestKeysOfAllDatabasesAreCounted(t *testing.T) {
	for text, want := range map[string]int64{
		"# Keyspace\r\n": 0,
		crlf("# Keyspace", "db0:keys=30000,expires=1,avg_ttl=0,keys_with_volatile_items=0"): 30000,
		crlf("db0:keys=1,expires=0", "db3:keys=2,expires=0"):                                3,
	} {
		if got, err := ParseKeyspace(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	if _, err := ParseKeyspace("db0:keys=many"); err == nil {
		t.Error("text is taken for a number of keys")
	}
}
