package actors

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/zap"

	"turnstone/protocol"
)

// groupedAppends answers appends as the journal does: many turns at once, from one goroutine.
func groupedAppends(b *testing.B, store *memory) {
	var (
		mu      sync.Mutex
		waiting []func()
		there   = make(chan struct{}, 1)
		stopped = make(chan struct{})
	)
	store.onAppend = func(_ *protocol.TurnAppend, _ func() error, done func(error)) {
		mu.Lock()
		waiting = append(waiting, func() { done(nil) })
		mu.Unlock()
		select {
		case there <- struct{}{}:
		default:
		}
	}
	go func() {
		defer close(stopped)
		for range there {
			mu.Lock()
			batch := waiting
			waiting = nil
			mu.Unlock()
			for _, answer := range batch {
				answer()
			}
		}
	}()
	b.Cleanup(func() {
		close(there)
		<-stopped
	})
}

// BenchmarkRelay takes tokens from models to readers, each durable before it is seen, in a store that costs nothing: what
// is left is what the turn's own way costs. A model says its next token when its reader has the last one.
func BenchmarkRelay(b *testing.B) {
	for _, turns := range []int{1, 200} {
		b.Run(fmt.Sprintf("turns=%d/goroutines", turns), func(b *testing.B) { relay(b, turns, false) })
		b.Run(fmt.Sprintf("turns=%d/workers", turns), func(b *testing.B) { relay(b, turns, true) })
	}
}

func relay(b *testing.B, turns int, workers bool) {
	store := newMemory()
	groupedAppends(b, store)
	each := b.N/turns + 1
	began := make(chan chan struct{}, turns)
	model := &script{play: func(ctx context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
		seen := make(chan struct{}, 1)
		select {
		case began <- seen:
		case <-ctx.Done():
			return ctx.Err()
		}
		for range each {
			if err := emit(ModelChunk{Kind: ChunkText, Text: "token "}); err != nil {
				return err
			}
			select {
			case <-seen:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}}
	n := NewNode(Config{
		Store: store, Log: store, Directory: store, Model: model, Routes: DefaultRoutes("b", "d", "c"), MaxLiveTurns: turns,
		Logger: zap.NewNop(),
	})
	if !workers { // as protoactor would
		n.dispatcher.limit = 0
	}
	if err := n.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	readers := make([]*Reader, turns)
	signals := make([]chan struct{}, turns)
	for i := range turns {
		result, err := n.StartTurn(b.Context(), &protocol.TurnStart{AccountID: protocol.NewAccountID(), Input: "go"})
		if err != nil {
			b.Fatal(err)
		}
		readers[i] = n.Follow(result.Spec.AccountID, result.Spec.TurnID, 3)
		signals[i] = <-began
	}
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for i, reader := range readers {
		group.Go(func() {
			for range each {
				if _, _, err := reader.Next(b.Context(), nil); err != nil {
					b.Error(err)
					return
				}
				signals[i] <- struct{}{}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	n.Stop()
}
