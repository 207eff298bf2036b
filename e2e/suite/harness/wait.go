//go:build e2e

package harness

import (
	"context"
	"fmt"
	"time"
)

// interval between two looks at what is waited for.
const interval = 200 * time.Millisecond

// until calls check until it returns nil. Its last error is why it gives up. A
// check that costs much is made less often: half of the time is for others.
func until(ctx context.Context, within time.Duration, check func() error) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		begin := time.Now()
		err := check()
		if err == nil {
			return nil
		}
		next := time.NewTimer(max(interval, time.Since(begin)))
		select {
		case <-ctx.Done():
			next.Stop()
			return fmt.Errorf("%w while waiting: %w", context.Cause(ctx), err)
		case <-deadline.C:
			next.Stop()
			return fmt.Errorf("not within %s: %w", within, err)
		case <-next.C:
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
