package acknowledge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// loss is what there is to acknowledge.
type loss struct {
	// awaited says which copies are waited for; empty for none.
	awaited string
	// shards whose slots would go to empty nodes.
	shards []shardLoss
	// happened says what was lost already; empty for nothing.
	happened string
}

type shardLoss struct {
	index int32
	slots string
	count int32
	// nodes that don't answer, with why as far as it is known.
	nodes []string
}

func (l loss) none() bool { return l.awaited == "" && l.happened == "" }

// lossOf reads what there is to acknowledge from what the manager reported.
func lossOf(s *inspect.Snapshot) loss {
	l := loss{awaited: inspect.AwaitedCopies(s.Cluster), happened: inspect.DataLoss(s.Cluster)}
	if l.awaited == "" {
		return l
	}
	for _, shard := range s.Cluster.Status.Shards {
		if shard.Primary == "" && shard.SlotCount > 0 {
			l.shards = append(l.shards, shardLoss{index: shard.Index, slots: shard.Slots, count: shard.SlotCount, nodes: silent(s, shard.Index)})
		}
	}
	return l
}

// silent are the nodes of a shard that hold no copy that the manager could use.
func silent(s *inspect.Snapshot, shard int32) []string {
	var out []string
	for _, n := range s.NodeList() {
		if n.Shard != shard || n.Lifecycle == string(v1alpha1.LifecycleJoining) || s.Nodes.Err == nil && n.InSync {
			continue
		}
		text := n.Name
		if n.Problem != "" {
			text += " (" + n.Problem + ")"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// text is what a person is to know before.
func (l loss) text(name string, palette output.Palette) string {
	var b strings.Builder
	if l.awaited != "" {
		fmt.Fprintf(&b, "%s\n  %s\n", palette.Title("Cluster "+name+" waits for copies of data that don't answer:"), l.awaited)
		fmt.Fprintf(&b, "%s\n", palette.Bad("If you accept the loss, empty nodes take these slots, and the data in them is given up for good:"))
		for _, shard := range l.shards {
			fmt.Fprintf(&b, "  shard %d: slots %s, %d of %d\n", shard.index, shard.slots, shard.count, slots.Count)
			if len(shard.nodes) > 0 {
				fmt.Fprintf(&b, "    held at most by %s\n", strings.Join(shard.nodes, ", "))
			}
		}
		if len(l.shards) == 0 {
			b.WriteString("  those of the shards named above\n")
		}
	}
	if l.happened != "" {
		fmt.Fprintf(&b, "%s\n  %s\n", palette.Title("Slots of cluster "+name+" lost their data:"), l.happened)
		if l.awaited == "" {
			b.WriteString("Acknowledging takes the condition DataLoss away; nothing else changes.\n")
		}
	}
	return b.String()
}
