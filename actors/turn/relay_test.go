package turn

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/zap"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/routing"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// groupedAppends makes a store complete the appends of many turns together, from one goroutine, as the journal does.
func groupedAppends(b *testing.B, store *actorstest.Memory) {
	var (
		mu      sync.Mutex
		waiting []func()
		ready   = make(chan struct{}, 1)
		stopped = make(chan struct{})
	)
	store.OnAppend = func(_ *turnlog.Append, _ func() error, done func(error)) {
		mu.Lock()
		waiting = append(waiting, func() { done(nil) })
		mu.Unlock()
		select {
		case ready <- struct{}{}:
		default:
		}
	}
	go func() {
		defer close(stopped)
		for range ready {
			mu.Lock()
			batch := waiting
			waiting = nil
			mu.Unlock()
			for _, complete := range batch {
				complete()
			}
		}
	}()
	b.Cleanup(func() {
		close(ready)
		<-stopped
	})
}

// BenchmarkRelay passes tokens from models to readers, each one durable before it is visible. The store takes no time,
// so the benchmark measures the code of turns and readers. A model sends its next token after its reader has received
// the previous one.
func BenchmarkRelay(b *testing.B) {
	for _, turns := range []int{1, 200} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) { relayTokens(b, turns) })
	}
}

func relayTokens(b *testing.B, turns int, change ...func(*testConfig)) {
	store := actorstest.NewMemory()
	groupedAppends(b, store)
	each := b.N/turns + 1
	began := make(chan chan struct{}, turns)
	model := &llmtest.Script{Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		seen := make(chan struct{}, 1)
		select {
		case began <- seen:
		case <-ctx.Done():
			return ctx.Err()
		}
		for range each {
			if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "token "}); err != nil {
				return err
			}
			select {
			case <-seen:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
	config := testConfig{Config: Config{
		Store: store, FollowUps: store, Log: store, Ownership: store, Approvals: store, Model: model, Routes: routing.Defaults("b", "d", "c"), MaxLiveTurns: turns,
		Logger: zap.NewNop(),
	}}
	for _, c := range change {
		c(&config)
	}
	n := newNode(store, config)
	if err := n.process.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	readers := make([]*Reader, turns)
	signals := make([]chan struct{}, turns)
	for i := range turns {
		result, err := n.StartTurn(b.Context(), &turnlog.Start{AccountID: protocol.NewAccountID(), Input: "go"})
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
