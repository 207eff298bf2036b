package valkey

import (
	"context"

	valkeygo "github.com/valkey-io/valkey-go"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

var (
	clusterMigrate    = newVerb("cluster|migrateslots")
	clusterMigrations = newVerb("cluster|getslotmigrations")
)

// Export is a set of slots for the node with an ID.
type Export struct {
	Slots    slots.Set
	TargetID string
}

// MigrateSlots implements Node.
func (c *connection) MigrateSlots(ctx context.Context, exports ...Export) error {
	words := exportWords(exports)
	if len(words) == 0 {
		return nil
	}
	return c.order(ctx, clusterMigrate.with(words...))
}

// exportWords writes SLOTSRANGE start end … NODE id for each export.
func exportWords(exports []Export) []string {
	var words []string
	for _, e := range exports {
		if e.Slots.Empty() {
			continue
		}
		words = append(words, "SLOTSRANGE")
		words = append(words, bounds(e.Slots)...)
		words = append(words, "NODE", e.TargetID)
	}
	return words
}

// SlotMigrations implements Node.
func (c *connection) SlotMigrations(ctx context.Context) ([]topology.Migration, error) {
	answers, err := c.read(ctx, clusterMigrations.with())
	if err != nil {
		return nil, err
	}
	return migrations(answers[0])
}

func migrations(answer valkeygo.ValkeyMessage) ([]topology.Migration, error) {
	reply, err := answer.ToAny()
	if err != nil {
		return nil, err
	}
	return topology.ParseMigrations(reply)
}
