package clocktest

import (
	"context"
	"time"

	"turnstone/protocol/clock"
)

// Poll calls attempt until it returns true, with a pause after each other call. If ctx ends first, it returns ctx's error. It is only
// for what another process does without a signal for the test: tests await everything else with a channel or Changes.
func Poll(ctx context.Context, pause time.Duration, attempt func() (done bool)) error {
	for !attempt() {
		if err := clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}
