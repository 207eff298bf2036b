package topology

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func node(id string, endpoint any, role, health string) map[string]any {
	return map[string]any{"id": id, "port": int64(6379), "ip": "10.0.0.1", "endpoint": endpoint, "role": role, "health": health, "replication-offset": int64(14), "new-field": "x"}
}

// flat turns a map into RESP2's list of keys and values.
func flat(m map[string]any) []any {
	var list []any
	for key, value := range m {
		list = append(list, key, value)
	}
	return list
}

// T-15
func TestShardsDecodeAlikeInBothProtocols(t *testing.T) {
	primary, failed := node(idA, "10.0.0.1", "master", "online"), node(idB, nil, "master", "failed")
	resp3 := []any{
		map[string]any{"slots": []any{int64(0), int64(5460), int64(7000), int64(7000)}, "nodes": []any{primary}, "id": idC},
		map[string]any{"slots": []any{}, "nodes": []any{failed}},
	}
	resp2 := []any{
		[]any{"id", idC, "nodes", []any{flat(primary)}, "slots", []any{int64(0), int64(5460), int64(7000), int64(7000)}},
		[]any{"nodes", []any{flat(failed)}, "slots", []any{}},
	}
	got3, err3 := ParseShards(resp3)
	got2, err2 := ParseShards(resp2)
	if err3 != nil || err2 != nil {
		t.Fatal(err3, err2)
	}
	if diff := cmp.Diff(got3, got2); diff != "" {
		t.Errorf("RESP3 and RESP2 differ\n%s", diff)
	}
	if len(got3) != 2 || got3[0].ID != idC || got3[0].Slots.String() != "0-5460 7000" || got3[0].Nodes[0].Role != RolePrimary {
		t.Errorf("got %+v", got3)
	}
	if !got3[1].Slots.Empty() || got3[1].Nodes[0].Health != "failed" {
		t.Errorf("a shard without slots is read as %+v", got3[1])
	}
}

func TestAClientDialsTheEndpointThatItWasTold(t *testing.T) {
	for name, tc := range map[string]struct {
		node map[string]any
		tls  bool
		want string
		err  error
	}{
		"an IP":                             {node: node(idA, "10.0.0.9", "replica", "online"), want: "10.0.0.9:6379"},
		"an IPv6 address":                   {node: node(idA, "fd01::9", "replica", "online"), want: "[fd01::9]:6379"},
		"null is the address asked":         {node: node(idA, nil, "master", "online"), want: "10.9.9.9:6379"},
		"empty text is the address asked":   {node: node(idA, "", "master", "online"), want: "10.9.9.9:6379"},
		"a question mark is never dialled":  {node: node(idA, "?", "master", "online"), err: ErrHostnameNotAnnounced},
		"the TLS port with TLS":             {node: map[string]any{"endpoint": "h.example.com", "tls-port": int64(31443)}, tls: true, want: "h.example.com:31443"},
		"no TLS port is no address for TLS": {node: node(idA, "10.0.0.9", "master", "online"), tls: true},
	} {
		t.Run(name, func(t *testing.T) {
			shards, err := ParseShards([]any{map[string]any{"slots": []any{}, "nodes": []any{tc.node}}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := shards[0].Nodes[0].DialAddress("10.9.9.9", tc.tls)
			if got != tc.want || (tc.want == "") != (err != nil) || tc.err != nil && !errors.Is(err, tc.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestShardsOfAnotherShapeAreAnError(t *testing.T) {
	for name, reply := range map[string]any{
		"text":                "OK",
		"a list of text":      []any{"OK"},
		"an odd flat map":     []any{[]any{"slots"}},
		"a key of a number":   []any{[]any{int64(1), "x"}},
		"an odd slot list":    []any{map[string]any{"slots": []any{int64(1)}}},
		"slots of text":       []any{map[string]any{"slots": []any{"a", "b"}}},
		"slots out of range":  []any{map[string]any{"slots": []any{int64(0), int64(16384)}}},
		"slots that are text": []any{map[string]any{"slots": "0-1"}},
		"nodes that are text": []any{map[string]any{"slots": []any{}, "nodes": "x"}},
		"a node that is text": []any{map[string]any{"slots": []any{}, "nodes": []any{"x"}}},
	} {
		if got, err := ParseShards(reply); err == nil {
			t.Errorf("%s gives %+v", name, got)
		}
	}
}
