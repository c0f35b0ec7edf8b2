package actors

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"turnstone/actors/llm"
)

// TestAFeedLosesNoTextAndWakesTheActor simulates a model, and an actor that holds the feed or defers text at random.
func TestAFeedLosesNoTextAndWakesTheActor(t *testing.T) {
	synctest.Test(t, aFeedLosesNothing)
}

func aFeedLosesNothing(t *testing.T) {
	const pieces, ready = 20_000, 0
	wakes := make(chan int, 4*pieces) // ready, or the number of the request whose slot has come
	var woken atomic.Int64
	feed := &modelFeed{request: 1, actor: actor.NewPID("test", "turn"), wake: func() {
		woken.Add(1)
		wakes <- ready
	}}
	feed.pacer = busyPacer(func(_ *actor.PID, message any) { wakes <- message.(paced).request })
	var want strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // measured by the fake clock
	defer cancel()
	for i := range pieces {
		kind := llm.ChunkText
		if i%97 == 0 {
			kind = llm.ChunkReasoning
		}
		fmt.Fprintf(&want, "%d:%d ", kind, i)
	}
	go func() {
		for i := range pieces {
			kind := llm.ChunkText
			if i%97 == 0 {
				kind = llm.ChunkReasoning
			}
			if err := feed.emit(ctx, llm.Chunk{Kind: kind, Text: fmt.Sprintf("%d:%d ", kind, i)}); err != nil {
				t.Error(err)
				return
			}
			if i%53 == 0 {
				<-time.After(time.Duration(i%7) * 2 * paceGrid)
			}
		}
		_ = feed.put(ctx, feedItem{over: true})
	}()
	var got strings.Builder
	decisions, served := int64(0), 0
	random := rand.New(rand.NewPCG(1, 2))
	for over := false; !over; {
		select {
		case request := <-wakes:
			if request != ready && !feed.served(request) {
				continue // the text of that request is no longer deferred
			}
			if request != ready {
				served++
			} else if feed.stale() {
				decisions++ // the wake was for text that waits
				continue
			} else if feed.release(); random.IntN(2) == 0 && feed.defers(llm.ChunkText, time.Now()) {
				decisions++ // this wake leads to a deferral instead of a take
				continue
			}
		case <-ctx.Done():
			t.Fatalf("there was no wake after %.40q", got.String()[max(0, got.Len()-40):])
		}
		for pending := true; pending && !over; {
			decisions++
			for _, item := range feed.take() {
				got.WriteString(item.fullText())
				over = over || item.over
			}
			pending = false
			switch random.IntN(3) {
			case 0:
				feed.mayWait(llm.ChunkText, time.Now())
			case 1:
				feed.hold()
				for range random.IntN(100) {
					feed.hold() // as for every message that arrives in the meantime
				}
				pending = feed.release()
			}
		}
	}
	if got.String() != want.String() {
		t.Error("the text that was taken differs from the text that was emitted")
	}
	if n := woken.Load(); n > decisions+1 {
		t.Errorf("%d wakes for %d takes and deferrals", n, decisions)
	}
	if served < 10 {
		t.Errorf("the pacer ended %d deferrals, want at least 10", served)
	}
}
