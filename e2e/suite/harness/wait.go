//go:build e2e

package harness

import (
	"context"
	"fmt"
	"time"
)

// interval between two looks at what is waited for.
const interval = 200 * time.Millisecond

// until calls check until it returns nil. Its last error is why it gives up.
func until(ctx context.Context, within time.Duration, check func() error) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting: %w", context.Cause(ctx), err)
		case <-deadline.C:
			return fmt.Errorf("not within %s: %w", within, err)
		case <-tick.C:
		}
	}
}

// Pause lets time pass in which nothing may happen. It is for checks that
// something does not happen, never for waiting until something has.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
