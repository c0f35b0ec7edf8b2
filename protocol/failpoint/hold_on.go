//go:build failpoint

package failpoint

import (
	"context"
	"sync"
)

// heldNames is the set of held names. Release closes the channel of a name.
var heldNames struct {
	mu     sync.Mutex
	byName map[string]chan struct{} // guarded by mu
}

// HoldAt holds a name: Hold of this name blocks until Release.
func HoldAt(name string) {
	heldNames.mu.Lock()
	defer heldNames.mu.Unlock()
	if heldNames.byName == nil {
		heldNames.byName = map[string]chan struct{}{}
	}
	if heldNames.byName[name] == nil {
		heldNames.byName[name] = make(chan struct{})
	}
}

// Release releases a name and every caller of Hold that waits for it.
func Release(name string) {
	heldNames.mu.Lock()
	defer heldNames.mu.Unlock()
	if gate := heldNames.byName[name]; gate != nil {
		close(gate)
		delete(heldNames.byName, name)
	}
}

// Hold waits while the name is held. It returns ctx's error when ctx ends first.
func Hold(ctx context.Context, name string) error {
	heldNames.mu.Lock()
	gate := heldNames.byName[name]
	heldNames.mu.Unlock()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
