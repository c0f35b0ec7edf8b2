package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestASuccessfulModelProbeIsCachedAndAFailedOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes, failure := 0, errors.New("unavailable")
		probe := cachedProbe(func(context.Context) error { probes++; return failure })
		for want := 1; want <= 2; want++ {
			if err := probe(t.Context()); err == nil || probes != want {
				t.Errorf("failing: %v, probed %d times, want %d", err, probes, want)
			}
		}
		failure = nil
		for range 3 {
			if err := probe(t.Context()); err != nil || probes != 3 {
				t.Errorf("successful: %v, probed %d times", err, probes)
			}
		}
		<-time.After(modelProbeAge) // on the fake clock of synctest
		if err := probe(t.Context()); err != nil || probes != 4 {
			t.Errorf("expired: %v, probed %d times", err, probes)
		}
	})
}
