//go:build api

package valkey

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey/valkeytest"
)

// A node that takes the dead for the owner of slots refuses them until it was told
// otherwise.
func TestSlotsOfADeadMemberAreTakenOnceTheyWereDeleted(t *testing.T) {
	ctx := t.Context()
	dead, heir := startServer(t, 1), startServer(t, 2)
	d, h := dead.dial(t), heir.dial(t)
	for i, node := range []Node{d, h} {
		if err := node.SetConfigEpoch(ctx, uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	all := slots.Split(1)[0]
	if err := d.AddSlots(ctx, all); err != nil {
		t.Fatal(err)
	}
	if err := h.Meet(ctx, dead.ip); err != nil {
		t.Fatal(err)
	}
	id := mustID(t, d)
	valkeytest.Eventually(t, "the heir knows the owner", func() error {
		for _, m := range observe(t, h).Members {
			if m.ID == id && m.Slots.Equal(all) {
				return nil
			}
		}
		return errors.New("it doesn't")
	})
	dead.signal(t, syscall.SIGKILL)
	if err := h.AddSlots(ctx, all); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("slots that have an owner: %v", err)
	}
	if err := h.DeleteSlots(ctx, all); err != nil {
		t.Fatal(err)
	}
	if err := h.AddSlots(ctx, all); err != nil {
		t.Fatal(err)
	}
	if err := h.BumpEpoch(ctx); err != nil {
		t.Fatal(err)
	}
	if self, ok := observe(t, h).Self(); !ok || !self.Slots.Equal(all) || self.ConfigEpoch < 2 {
		t.Errorf("it owns slots %s with epoch %d", self.Slots, self.ConfigEpoch)
	}
}
