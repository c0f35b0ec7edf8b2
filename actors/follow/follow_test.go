package follow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"turnstone/actors/follow"
	"turnstone/actors/tail"
	"turnstone/protocol"
)

// TestALongLogIsReadWithoutWaiting: the store returns a log in parts, and a reader waits only after the last one.
func TestALongLogIsReadWithoutWaiting(t *testing.T) {
	t.Parallel()
	const events, part = 10, 3
	reads := 0
	logs := &follow.Logs[string]{
		Frames: func(_ context.Context, _ protocol.AccountID, _ string, after int64) (frames []byte, last int64, err error) {
			reads++
			for last = after; last < min(after+part, events); last++ {
				frames = fmt.Appendf(frames, "%d\n", last+1)
			}
			return frames, last, nil
		},
		Ends:  func([]byte) bool { return false },
		Moved: func() bool { return false },
	}
	reader := logs.Follow(protocol.NewAccountID(), "log", 0)
	defer reader.Leave()
	var read strings.Builder
	for waker := make(tail.Signal, 1); ; {
		_, taken := reader.Take(waker, nil)
		if taken == tail.TakenCaughtUp {
			break
		}
		frames, ended, err := reader.Next(t.Context(), nil)
		if taken != tail.TakenNotInMemory || ended || err != nil && !errors.Is(err, tail.ErrNone) {
			t.Fatalf("%v: %q, %v, %v", taken, frames, ended, err)
		}
		read.Write(frames)
	}
	if want := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"; read.String() != want || reads != 5 {
		t.Errorf("%q was read in %d parts", read.String(), reads)
	}
}
