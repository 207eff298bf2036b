package valkey

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// verbatim is how RESP3 writes an answer of several lines.
func verbatim(s string) string { return fmt.Sprintf("=%d\r\ntxt:%s\r\n", len(s)+4, s) }

var (
	someID       = strings.Repeat("a", 40)
	observations = map[string]string{
		"CLUSTER MYID":     bulk(someID),
		"CLUSTER NODES":    verbatim(someID + " 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-5460\n"),
		"CLUSTER INFO":     verbatim("cluster_state:fail\r\ncluster_slots_assigned:5461\r\ncluster_known_nodes:1\r\ncluster_size:1\r\ncluster_current_epoch:1\r\ncluster_my_epoch:1\r\n"),
		"INFO replication": verbatim("# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n"),
		"INFO keyspace":    verbatim("# Keyspace\r\ndb0:keys=7,expires=0,avg_ttl=0\r\n"),
		"CLUSTER GETSLOTMIGRATIONS": "*1\r\n%5\r\n" + bulk("name") + bulk("j1") + bulk("operation") + bulk("EXPORT") +
			bulk("slot_ranges") + bulk("0-9") + bulk("state") + bulk("failed") + bulk("message") + bulk("no route"),
	}
)

func TestAnObservationIsOneRoundTripOfReads(t *testing.T) {
	server := serve(t, nil, answers(observations))
	node := dial(t, NewDialer(), Target{Address: server.address(), PodIP: "10.0.0.1"})
	reply, err := node.Observe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if reply.Node != "c-0a1b2" || reply.PodIP != "10.0.0.1" || reply.ID != someID || reply.Keys != 7 ||
		reply.Info.State != "fail" || reply.Replication.Role != topology.RolePrimary {
		t.Errorf("%+v", reply)
	}
	if self, ok := reply.Self(); !ok || self.Slots.Len() != 5461 {
		t.Errorf("own row: %+v", self)
	}
	if jobs := reply.Migrations; len(jobs) != 1 || !jobs[0].Export || !jobs[0].Failed() || jobs[0].Slots.Len() != 10 || jobs[0].Message != "no route" {
		t.Errorf("migrations: %+v", jobs)
	}
	want := []string{"CLUSTER MYID", "CLUSTER NODES", "CLUSTER INFO", "INFO replication", "INFO keyspace", "CLUSTER GETSLOTMIGRATIONS"}
	if diff := cmp.Diff(want, server.sent()[1:]); diff != "" {
		t.Error(diff)
	}
}

func TestAnObservationThatIsRefusedOrGarbledNamesNodeAndCommand(t *testing.T) {
	for command, reply := range map[string]string{
		"CLUSTER MYID":              "-LOADING Valkey is loading the dataset in memory\r\n",
		"CLUSTER NODES":             verbatim("nonsense\n"),
		"CLUSTER INFO":              verbatim("cluster_slots_assigned:many\r\n"),
		"INFO replication":          verbatim("# Replication\r\n"),
		"INFO keyspace":             verbatim("db0:keys=x\r\n"),
		"CLUSTER GETSLOTMIGRATIONS": "*1\r\n%1\r\n" + bulk("slot_ranges") + bulk("many"),
	} {
		changed := map[string]string{}
		for prefix, good := range observations {
			changed[prefix] = good
		}
		changed[command] = reply
		server := serve(t, nil, answers(changed))
		_, err := dial(t, NewDialer(), Target{Address: server.address()}).Observe(context.Background())
		if err == nil || !strings.Contains(err.Error(), "c-0a1b2") || !strings.Contains(err.Error(), command) {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestEveryCommandIsWrittenAsTheServerReadsIt(t *testing.T) {
	set, err := slots.ParseSet("0-5460 7000")
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, nil, answers(map[string]string{
		"CONFIG GET": "%1\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n",
		"ACL LIST":   "*2\r\n" + bulk("user a off") + bulk("user default on"),
	}))
	node := dial(t, NewDialer(), Target{Address: server.address()})
	ctx := context.Background()
	for want, send := range map[string]func() error{
		"PING":                                   func() error { return node.Ping(ctx) },
		"CLUSTER SET-CONFIG-EPOCH 12":            func() error { return node.SetConfigEpoch(ctx, 12) },
		"CLUSTER BUMPEPOCH":                      func() error { return node.BumpEpoch(ctx) },
		"CLUSTER ADDSLOTSRANGE 0 5460 7000 7000": func() error { return node.AddSlots(ctx, set) },
		"CLUSTER DELSLOTSRANGE 0 5460 7000 7000": func() error { return node.DeleteSlots(ctx, set) },
		"CLUSTER MEET 10.0.0.2 6379 16379":       func() error { return node.Meet(ctx, "10.0.0.2") },
		"CLUSTER REPLICATE aaaa":                 func() error { return node.Replicate(ctx, "aaaa") },
		"CLUSTER FORGET bbbb":                    func() error { return node.Forget(ctx, "bbbb") },
		"CLUSTER FAILOVER":                       func() error { return node.Failover(ctx, FailoverGraceful) },
		"CLUSTER FAILOVER FORCE":                 func() error { return node.Failover(ctx, FailoverForce) },
		"CLUSTER FAILOVER TAKEOVER":              func() error { return node.Failover(ctx, FailoverTakeover) },
		"CONFIG SET maxmemory 100mb save ":       func() error { return node.ConfigSet(ctx, [2]string{"maxmemory", "100mb"}, [2]string{"save", ""}) },
		"ACL LOAD":                               func() error { return node.ACLLoad(ctx) },
		"CONFIG GET maxmemory": func() error {
			got, err := node.ConfigGet(ctx, "maxmemory")
			if diff := cmp.Diff(map[string]string{"maxmemory": "0"}, got); diff != "" {
				t.Error(diff)
			}
			return err
		},
		"ACL LIST": func() error {
			got, err := node.ACLList(ctx)
			if diff := cmp.Diff([]string{"user a off", "user default on"}, got); diff != "" {
				t.Error(diff)
			}
			return err
		},
	} {
		if err := send(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		sent := server.sent()
		if got := sent[len(sent)-1]; got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
}

func TestForgettingANodeThatIsNotKnownSucceeds(t *testing.T) {
	for reply, wantErr := range map[string]bool{
		"-ERR Unknown node " + someID + "\r\n":               false,
		"-ERR I tried hard but I can't forget myself...\r\n": true,
		"-ERR Can't forget my master!\r\n":                   true,
	} {
		server := serve(t, nil, answers(map[string]string{"CLUSTER FORGET": reply}))
		err := dial(t, NewDialer(), Target{Address: server.address()}).Forget(context.Background(), someID)
		if (err != nil) != wantErr {
			t.Errorf("%q: %v", reply, err)
		}
	}
}

func TestATraceSeesCommandsWithoutTheirArguments(t *testing.T) {
	server := serve(t, nil, answers(map[string]string{"CONFIG SET": "-ERR no\r\n"}))
	var seen []Sent
	node := dial(t, &NetDialer{Trace: func(s Sent) { seen = append(seen, s) }}, Target{Address: server.address()})
	if err := node.ConfigSet(context.Background(), [2]string{"primaryauth", "hunter2"}); err == nil {
		t.Fatal("no error")
	}
	if len(seen) != 1 || seen[0].Command != "config|set" || seen[0].Err == nil || strings.Contains(fmt.Sprint(seen), "hunter2") {
		t.Errorf("%v", seen)
	}
}
