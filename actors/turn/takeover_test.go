package turn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/actors/actorstest"
	"turnstone/actors/node"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// The promised limits of a takeover. The clock of these tests is a fake one, so they are checked exactly.
const (
	maxTakeover = 5 * time.Second // from the end of a node to the first event of the turn on another one
	maxRelease  = 2 * time.Second // the same for a drain, from the end of its grace
	releaseWait = 5 * time.Second // for the writes that are in flight when the grace is over
)

// inBubble runs a test on a fake clock, which ends with the timers of the actor system.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Minute) })
		test(t)
	})
}

func isRecovering(p protocol.Payload) bool { _, is := p.(*protocol.TurnRecoveringEvent); return is }

// A node ends without notice at different times between two rounds of the other one.
func TestATurnOfASilentNodeIsTakenOverInTimeAndNotBeforeItsLeaseHasEnded(t *testing.T) {
	for offset := time.Duration(0); offset < node.RenewInterval; offset += node.RenewInterval / 20 {
		inBubble(t, func(t *testing.T) {
			store, words := actorstest.NewMemory(), make(chan string)
			defer close(words)
			silent := startNode(t, store, gated(words), nil)
			<-time.After(offset)
			other := startNode(t, store, gated(words), nil)
			<-time.After(10 * node.RenewInterval)
			spec := startTurn(t, silent, "hi")
			words <- "one "
			read(t, silent, spec, 0, isDelta)
			silent.Stop() // as if it was killed: it neither releases its turns nor leaves
			ended := time.Now()
			read(t, other, spec, 0, isRecovering)
			if took := time.Since(ended); took > maxTakeover || took <= node.LeaseValidFor-node.RenewInterval {
				t.Errorf("taken over after %s, want at most %s", took, maxTakeover)
			}
		})
	}
}

// A turn does not end within the grace of a drain.
func TestADrainReleasesItsTurnsWhenItsGraceIsOver(t *testing.T) {
	const grace = 25 * time.Second
	inBubble(t, func(t *testing.T) {
		store, words := actorstest.NewMemory(), make(chan string)
		defer close(words)
		draining, other := startNode(t, store, gated(words), nil), startNode(t, store, gated(words), nil)
		spec := startTurn(t, draining, "hi")
		words <- "one "
		read(t, draining, spec, 0, isDelta)
		over := time.Now().Add(grace)
		drained := make(chan error, 1)
		go func() { drained <- draining.Drain(t.Context(), grace) }()
		<-time.After(grace - time.Nanosecond)
		select {
		case err := <-drained:
			t.Errorf("drained before the grace was over: %v", err)
		default:
		}
		if head, err := store.TurnHead(t.Context(), spec.AccountID, spec.TurnID); err != nil || head.Owner == nil {
			t.Errorf("released before the grace was over: %+v, %v", head, err)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		read(t, other, spec, 0, isRecovering)
		if took := time.Since(over); took > maxRelease {
			t.Errorf("taken over %s after the grace, want at most %s", took, maxRelease)
		}
	})
}

// A drain ends even if the store confirms nothing. Another node takes over the turn when the lease has ended.
func TestADrainEndsAlthoughNothingIsStored(t *testing.T) {
	const grace = 25 * time.Second
	inBubble(t, func(t *testing.T) {
		store, words := actorstest.NewMemory(), make(chan string)
		defer close(words)
		n := startNode(t, store, gated(words), nil)
		spec := startTurn(t, n, "hi")
		words <- "one "
		read(t, n, spec, 0, isDelta)
		store.OnAppend = func(*turnlog.Append, func() error, func(error)) {}
		words <- "two "
		began := time.Now()
		if err := n.Drain(context.WithoutCancel(t.Context()), grace); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != grace+releaseWait {
			t.Errorf("drained after %s, want %s", took, grace+releaseWait)
		}
	})
}
