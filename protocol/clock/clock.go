// Package clock has a sleep that a context can end. It imports nothing else of this module.
package clock

import (
	"context"
	"time"
)

// Sleep waits for d. If ctx ends first, it returns ctx's error. If d is not positive, it returns ctx's error at once.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
