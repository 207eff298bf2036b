package shown_test

import (
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/poller/shown"
)

func slots(endpoint any, port int64) any {
	return []any{[]any{int64(0), int64(16383), []any{endpoint, port, "aa", []any{"hostname", "x"}}}}
}

func shards(portName string, port int64, endpoint string) any {
	node := []any{"id", "aa", portName, port, "ip", "10.0.0.1", "endpoint", endpoint}
	return []any{[]any{"slots", []any{int64(0), int64(16383)}, "nodes", []any{node}}}
}

// The poller notices each kind of wrong answer.
func TestWrongAnswersAreNoticed(t *testing.T) {
	right := map[string]map[string]bool{}
	for _, subject := range []string{"aa", "slot 7"} {
		right[subject] = map[string]bool{"10.0.0.1:6379": true, "shard-0.valkey.test:31000": true}
	}
	for _, c := range []struct {
		question string
		reply    any
		bad      bool
	}{
		{shown.Slots, slots("10.0.0.1", 6379), false},
		{shown.Slots, slots("shard-0.valkey.test", 31000), false},
		{shown.Slots, slots("10.0.0.1", 31000), true},
		{shown.Slots, slots("shard-0.valkey.test", 6379), true},
		{shown.Slots, slots("shard-1.valkey.test", 31000), true},
		{shown.Slots, slots("elsewhere.valkey.test", 6379), true},
		{shown.Slots, slots("?", 6379), true},
		{shown.Slots, slots(nil, 31000), true},
		{shown.Slots, slots("10.0.0.1", 0), true},
		{shown.Shards, shards("port", 6379, "10.0.0.1"), false},
		{shown.Shards, shards("tls-port", 31000, "shard-0.valkey.test"), false},
		{shown.Shards, shards("port", 31000, "10.0.0.1"), true},
		{shown.Shards, shards("port", 6379, "?"), true},
		{shown.Shards, shards("port", 6379, ""), true},
		{shown.Moved, "MOVED 7 10.0.0.1:6379", false},
		{shown.Moved, "MOVED 7 shard-0.valkey.test:31000", false},
		{shown.Moved, "MOVED 7 10.0.0.1:31000", true},
		{shown.Moved, "MOVED 7 shard-0.valkey.test:6379", true},
		{shown.Moved, "MOVED 7 ?:31000", true},
		{shown.Moved, "MOVED 7 :31000", true},
		{shown.Moved, "MOVED 7 10.0.0.1:0", true},
	} {
		read := shown.Read(c.question, c.reply)
		if len(read) != 1 {
			t.Errorf("%v: read %+v", c.reply, read)
		}
		if wrong := shown.Wrong(read, right); (len(wrong) > 0) != c.bad {
			t.Errorf("%s: %v: %v", c.question, c.reply, wrong)
		}
	}
}

func TestRepliesThatShowNothing(t *testing.T) {
	for question, reply := range map[string]any{
		shown.Slots: "LOADING the dataset is loaded", shown.Shards: nil, shown.Moved: "value",
	} {
		if read := shown.Read(question, reply); len(read) > 0 {
			t.Errorf("%v: read %+v", reply, read)
		}
	}
}
