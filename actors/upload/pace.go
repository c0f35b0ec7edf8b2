package upload

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

const (
	// whileTurnsRun limits what all transfers of a node read together while turns run on it, in bytes per second and processor.
	// Receiving at the full speed of a local network uses all processors for hashing and copying, and tokens then arrive late.
	whileTurnsRun = 16 << 20
	// paceBurst limits one read. Transfers take turns after each.
	paceBurst = 256 << 10
)

// paced reads a body. While turns run on the node, it waits after a read for its part of the rate of all transfers.
type paced struct {
	ctx  context.Context
	from io.Reader
	pace *rate.Limiter
	live func() int
}

// Read implements io.Reader.
func (b *paced) Read(p []byte) (int, error) {
	n, err := b.from.Read(p[:min(len(p), paceBurst)])
	if n > 0 && b.live() > 0 {
		if stopped := b.pace.WaitN(b.ctx, n); stopped != nil {
			return n, stopped
		}
	}
	return n, err
}
