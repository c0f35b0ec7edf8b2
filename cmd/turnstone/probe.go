package main

import (
	"context"
	"sync"
	"time"

	ourhttp "turnstone/http"
)

// modelProbeAge is how long a good answer of the model's vendor counts: vendors count requests.
const modelProbeAge = 15 * time.Second

// seldom asks again only when the last answer was bad or is old.
func seldom(probe ourhttp.Probe) ourhttp.Probe {
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
