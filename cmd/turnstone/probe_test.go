package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAGoodAnswerOfTheModelCountsForAWhileAndABadOneNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, failure := 0, errors.New("away")
		probe := seldom(func(context.Context) error { asked++; return failure })
		for want := 1; want <= 2; want++ {
			if err := probe(t.Context()); err == nil || asked != want {
				t.Errorf("bad: %v, asked %d times, want %d", err, asked, want)
			}
		}
		failure = nil
		for range 3 {
			if err := probe(t.Context()); err != nil || asked != 3 {
				t.Errorf("good: %v, asked %d times", err, asked)
			}
		}
		<-time.After(modelProbeAge) // on the clock of the bubble
		if err := probe(t.Context()); err != nil || asked != 4 {
			t.Errorf("old: %v, asked %d times", err, asked)
		}
	})
}
