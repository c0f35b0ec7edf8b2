package main

import (
	"context"
	"sync"
	"time"

	"turnstone/http/ready"
)

// modelProbeAge is how long a successful probe of the model provider counts. Providers count requests, so probes are
// kept rare.
const modelProbeAge = 15 * time.Second

// cachedProbe wraps a probe so that it runs only if the last run failed or is older than modelProbeAge.
func cachedProbe(probe ready.Probe) ready.Probe {
	var mu sync.Mutex
	var good time.Time // guarded by mu
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if !good.IsZero() && time.Since(good) < modelProbeAge {
			return nil
		}
		err := probe(ctx)
		if err == nil {
			good = time.Now()
		}
		return err
	}
}
