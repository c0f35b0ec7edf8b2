package turn

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

// TestTheOutputLosesNoTextAndWakesTheActor simulates a model, and an actor that stores steps and is busy at random.
func TestTheOutputLosesNoTextAndWakesTheActor(t *testing.T) {
	synctest.Test(t, theOutputLosesNothing)
}

func theOutputLosesNothing(t *testing.T) {
	const pieces, ready = 20_000, 0
	wakes := make(chan int, 4*pieces) // ready, or the number of the request whose slot has come
	var woken atomic.Int64
	output := &modelOutput{request: 1, actor: actor.NewPID("test", "turn"), wake: func() {
		woken.Add(1)
		wakes <- ready
	}}
	output.pacer = busyPacer(func(_ *actor.PID, message any) { wakes <- message.(paced).request })
	var want strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // measured by the fake clock
	defer cancel()
	kindOf := func(i int) llm.ChunkKind {
		if i%97 == 0 {
			return llm.ChunkReasoning
		}
		return llm.ChunkText
	}
	for i := range pieces {
		fmt.Fprintf(&want, "%d:%d ", kindOf(i), i)
	}
	go func() {
		for i := range pieces {
			if err := output.emit(ctx, llm.Chunk{Kind: kindOf(i), Text: fmt.Sprintf("%d:%d ", kindOf(i), i)}); err != nil {
				t.Error(err)
				return
			}
			if i%53 == 0 {
				<-time.After(time.Duration(i%7) * 2 * paceGrid)
			}
		}
		_ = output.put(ctx, outputItem{over: true})
	}()
	var got strings.Builder
	takes, served := int64(0), 0
	random := rand.New(rand.NewPCG(1, 2))
	for over := false; !over; {
		select {
		case request := <-wakes:
			switch {
			case request == ready && !output.awaited(), request != ready && !output.served(request):
				continue // the output was taken before
			case request != ready:
				served++
			}
		case <-ctx.Done():
			t.Fatalf("there was no wake after %.40q", got.String()[max(0, got.Len()-40):])
		}
		takes++
		for _, item := range output.take() {
			got.WriteString(item.fullText())
			over = over || item.over
		}
		if random.IntN(3) > 0 { // a step is stored
			output.hold(llm.ChunkText, time.Now())
			if random.IntN(2) == 0 {
				<-time.After(paceGrid / 5)
			}
			output.release()
		}
	}
	if got.String() != want.String() {
		t.Error("the text that was taken differs from the text that was emitted")
	}
	if n := woken.Load(); n > takes+1 {
		t.Errorf("%d wakes for %d takes", n, takes)
	}
	if served < 10 {
		t.Errorf("the pacer ended %d waits, want at least 10", served)
	}
}
