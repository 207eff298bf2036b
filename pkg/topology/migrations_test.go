package topology

import (
	"fmt"
	"reflect"
	"testing"
)

const (
	sourceID = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	targetID = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// S-02
func TestMigrationsReadTheSameInBothProtocols(t *testing.T) {
	flat := []any{
		"name", "5371b28997de6fd0bbe813ad8ebdfdf2faadb308", "operation", "EXPORT", "slot_ranges", "0-10 20-29",
		"target_node", targetID, "source_node", sourceID, "create_time", int64(1754870400), "state", "failed",
		"message", "Protocol error", "cow_size", int64(0), "remaining_repl_size", int64(5),
	}
	mapped := map[string]any{}
	for i := 0; i < len(flat); i += 2 {
		mapped[fmt.Sprint(flat[i])] = flat[i+1]
	}
	resp2, err := ParseMigrations([]any{flat})
	if err != nil {
		t.Fatal(err)
	}
	resp3, err := ParseMigrations([]any{mapped})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(resp2, resp3) {
		t.Errorf("RESP2 gives %+v, RESP3 %+v", resp2, resp3)
	}
	job := resp2[0]
	if job.Slots.Len() != 21 || job.Slots.String() != "0-10 20-29" {
		t.Errorf("slots %s", job.Slots)
	}
	if !job.Export || !job.Done() || !job.Failed() || job.Message != "Protocol error" || job.Created != 1754870400 || job.TargetID != targetID || job.SourceID != sourceID {
		t.Errorf("read as %+v", job)
	}
}

func TestOnlyThreeStatesEndAMigration(t *testing.T) {
	for state, want := range map[string][2]bool{
		"success": {true, false}, "failed": {true, true}, "cancelled": {true, true},
		"snapshotting": {false, false}, "failover-paused": {false, false}, "a-state-of-the-future": {false, false},
	} {
		m := Migration{State: state}
		if got := [2]bool{m.Done(), m.Failed()}; got != want {
			t.Errorf("state %s: done and failed are %v, want %v", state, got, want)
		}
	}
}

func TestAReplicasMigrationNamesNoNodes(t *testing.T) {
	jobs, err := ParseMigrations([]any{map[string]any{"name": "x", "operation": "IMPORT", "slot_ranges": "5", "state": "occurring-on-primary"}})
	if err != nil || len(jobs) != 1 || jobs[0].TargetID != "" || jobs[0].Export || jobs[0].Done() {
		t.Errorf("read as %+v, %v", jobs, err)
	}
}
