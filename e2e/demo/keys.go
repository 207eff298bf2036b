package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// keyCount keys are enough to land on every shard of a small cluster.
const keyCount = 100

// script is what valkey-cli reads from its standard input: for each key the
// commands whose replies say what happened where. CLUSTER MYID goes to the node
// that the command before it was redirected to.
func script() string {
	var b strings.Builder
	for _, verb := range []string{"SET", "GET"} {
		for i := range keyCount {
			key := keyName(i)
			if verb == "SET" {
				fmt.Fprintf(&b, "SET %s %s\n", key, value(i))
			} else {
				fmt.Fprintf(&b, "GET %s\n", key)
			}
			fmt.Fprintf(&b, "CLUSTER MYID\nCLUSTER KEYSLOT %s\n", key)
		}
	}
	return b.String()
}

func keyName(i int) string { return "demo:" + strconv.Itoa(i) }

func value(i int) string { return "value-" + strconv.Itoa(i) }

// answer says which node answered for a key.
type answer struct {
	key  string
	slot int
	node string
}

// parse reads valkey-cli's replies to script. It returns who answered each read,
// and an error unless every write and read did what it should, on the same node.
func parse(replies string) ([]answer, error) {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(replies), "\n"), redirect)
	if want := 2 * keyCount * 3; len(lines) != want {
		return nil, fmt.Errorf("want %d replies, got %d: %.200q", want, len(lines), replies)
	}
	wrote := map[string]string{}
	var answers []answer
	for i := range 2 * keyCount {
		reply, id, slot := lines[3*i], lines[3*i+1], lines[3*i+2]
		key, want := keyName(i%keyCount), "OK"
		if i >= keyCount {
			want = value(i % keyCount)
		}
		if reply != want {
			return nil, fmt.Errorf("key %s: want reply %q, got %q", key, want, reply)
		}
		if i < keyCount {
			wrote[key] = id
			continue
		}
		if wrote[key] != id {
			return nil, fmt.Errorf("key %s was written to node %s and read from %s", key, wrote[key], id)
		}
		number, err := strconv.Atoi(slot)
		if err != nil {
			return nil, fmt.Errorf("key %s: read the slot: %w", key, err)
		}
		answers = append(answers, answer{key: key, slot: number, node: id})
	}
	return answers, nil
}

// redirect reports whether a line is no reply, but tells that valkey-cli was sent
// to another node and asks there.
func redirect(line string) bool { return strings.HasPrefix(line, "-> Redirected ") }

// report tells how many keys each node holds and shows a few of them. Names maps
// the servers' IDs to pods.
func report(w io.Writer, answers []answer, names map[string]string) {
	count := map[string]int{}
	for i := range answers {
		if name, ok := names[answers[i].node]; ok {
			answers[i].node = name
		}
		count[answers[i].node]++
	}
	fmt.Fprintf(w, "%d keys were written and read back through redirects:\n\n", len(answers))
	nodes := make([]string, 0, len(count))
	for node := range count {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	for _, node := range nodes {
		fmt.Fprintf(w, "  %-14s answered for %d keys\n", node, count[node])
	}
	fmt.Fprintf(w, "\n  %-10s %6s  %s\n", "KEY", "SLOT", "NODE")
	few := slices.Clone(answers[:min(6, len(answers))])
	slices.SortFunc(few, func(a, b answer) int { return cmp.Compare(a.slot, b.slot) })
	for _, a := range few {
		fmt.Fprintf(w, "  %-10s %6d  %s\n", a.key, a.slot, a.node)
	}
}
