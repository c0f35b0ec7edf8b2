// Package sharetest makes shared round trips deterministic for tests. Only tests import it.
package sharetest

import "sync"

// CollectGroups replaces a function that processes groups by one that collects n items and then processes them as one
// group.
func CollectGroups[T any](work *func(group []T), n int) {
	original := *work
	var mu sync.Mutex
	var waiting []T // guarded by mu
	*work = func(group []T) {
		mu.Lock()
		waiting = append(waiting, group...)
		if len(waiting) < n {
			mu.Unlock()
			return
		}
		whole := waiting
		waiting = nil
		mu.Unlock()
		original(whole)
	}
}
