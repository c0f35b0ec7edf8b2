package actors

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

func TestWorkersRunAllThatIsScheduledAndNoMoreAtOnce(t *testing.T) {
	d := newDispatcher()
	var all sync.WaitGroup
	var running, ran atomic.Int32
	const each, posters = 500, 8
	all.Add(2 * each * posters)
	for range posters {
		go func() {
			for range each {
				d.Schedule(func() {
					if n := int(running.Add(1)); n > d.limit {
						t.Errorf("%d at once", n)
					}
					ran.Add(1)
					d.Schedule(func() { // from within, as an actor that sends to another
						ran.Add(1)
						all.Done()
					})
					running.Add(-1)
					all.Done()
				})
			}
		}()
	}
	all.Wait()
	d.close()
	if got := ran.Load(); got != 2*each*posters {
		t.Errorf("%d ran", got)
	}
	if d.workers > d.limit {
		t.Errorf("%d workers", d.workers)
	}
	late := make(chan struct{})
	d.Schedule(func() { close(late) })
	select {
	case <-late:
	case <-time.After(patience):
		t.Error("what is scheduled after close must run too: it is answered as a dead letter")
	}
}

// TestAFeedLosesNothingAndWakesWhoMustLook plays a model against an actor that is held, and lets text rest, at random.
func TestAFeedLosesNothingAndWakesWhoMustLook(t *testing.T) {
	synctest.Test(t, aFeedLosesNothing)
}

func aFeedLosesNothing(t *testing.T) {
	const pieces, ready = 20_000, 0
	wakes := make(chan int, 4*pieces) // ready, or the place that is served
	var woken atomic.Int64
	feed := &modelFeed{place: 1, actor: actor.NewPID("test", "turn"), wake: func() {
		woken.Add(1)
		wakes <- ready
	}}
	feed.pacer = busyPacer(func(_ *actor.PID, message any) { wakes <- message.(paced).place })
	var want strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the fake clock
	defer cancel()
	for i := range pieces {
		kind := ChunkText
		if i%97 == 0 {
			kind = ChunkReasoning
		}
		fmt.Fprintf(&want, "%d:%d ", kind, i)
	}
	go func() {
		for i := range pieces {
			kind := ChunkText
			if i%97 == 0 {
				kind = ChunkReasoning
			}
			if err := feed.emit(ctx, ModelChunk{Kind: kind, Text: fmt.Sprintf("%d:%d ", kind, i)}); err != nil {
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
	looks, served := int64(0), 0
	random := rand.New(rand.NewPCG(1, 2))
	for over := false; !over; {
		select {
		case place := <-wakes:
			if place != ready && !feed.served(place) {
				continue // it has left that place
			}
			if place != ready {
				served++
			} else if feed.release(); random.IntN(2) == 0 && feed.rests(ChunkText, time.Now()) {
				looks++ // it has looked whether the text may rest
				continue
			}
		case <-ctx.Done():
			t.Fatalf("nobody was woken behind %.40q", got.String()[max(0, got.Len()-40):])
		}
		for look := true; look && !over; {
			looks++
			for _, item := range feed.take() {
				got.WriteString(item.words())
				over = over || item.over
			}
			look = false
			switch random.IntN(3) {
			case 0:
				feed.mayWait(ChunkText, time.Now())
			case 1:
				feed.hold()
				for range random.IntN(100) {
					feed.hold() // as every message does that comes meanwhile
				}
				look = feed.release()
			}
		}
	}
	if got.String() != want.String() {
		t.Error("the text differs")
	}
	if n := woken.Load(); n > looks+1 {
		t.Errorf("woken %d times for %d looks", n, looks)
	}
	if served < 10 {
		t.Errorf("text has rested %d times", served)
	}
}

// What is never idle must not grow with what it has run, and keeps the order.
func TestADispatcherThatIsNeverIdleKeepsNoPlaces(t *testing.T) {
	d := newDispatcher()
	d.workers = d.limit // this test takes in their place
	const waiting, all = 10, 20 * takenMost
	var ran []int
	for i := range all {
		d.Schedule(func() { ran = append(ran, i) })
		if i >= waiting {
			d.take()()
		}
		if len(d.ready) > 2*takenMost+waiting {
			t.Fatalf("%d places are kept for %d that wait", len(d.ready), waiting)
		}
	}
	for i, n := range ran {
		if i != n {
			t.Fatalf("%d ran in place %d", n, i)
		}
	}
}
