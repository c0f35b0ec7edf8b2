//go:build failpoint

package failpoint

import (
	"context"
	"sync"
)

// gates are what is held, by name. A gate is closed when its name is let go.
var gates struct {
	mu     sync.Mutex
	byName map[string]chan struct{} // guarded by mu
}

// HoldAt holds a name until LetGo.
func HoldAt(name string) {
	gates.mu.Lock()
	defer gates.mu.Unlock()
	if gates.byName == nil {
		gates.byName = map[string]chan struct{}{}
	}
	if gates.byName[name] == nil {
		gates.byName[name] = make(chan struct{})
	}
}

// LetGo ends the hold of a name.
func LetGo(name string) {
	gates.mu.Lock()
	defer gates.mu.Unlock()
	if gate := gates.byName[name]; gate != nil {
		close(gate)
		delete(gates.byName, name)
	}
}

// Hold waits while the name is held, or until ctx ends.
func Hold(ctx context.Context, name string) error {
	gates.mu.Lock()
	gate := gates.byName[name]
	gates.mu.Unlock()
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
