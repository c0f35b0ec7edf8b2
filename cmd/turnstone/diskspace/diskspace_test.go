package diskspace

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/http/chat"
	"turnstone/persistence/objects/disk"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// startedTurns counts the calls of StartTurn.
type startedTurns struct {
	chat.Turns
	count int
}

func (s *startedTurns) StartTurn(context.Context, *turnlog.Start) (*turnlog.StartResult, error) {
	s.count++
	return nil, nil // the caller ignores the result
}

func TestNoTurnBeginsWhileTheDiskIsNearlyFull(t *testing.T) {
	const gib = 1 << 30
	log, lines := observer.New(zap.InfoLevel)
	found, failure, reads, now := Space{}, error(nil), 0, time.Unix(0, 0)
	guard := New("", "new turns", zap.New(log))
	guard.read = func() (Space, error) { reads++; return found, failure }
	guard.now = func() time.Time { return now }
	started := &startedTurns{}
	turns := Turns{started, guard}
	for i, c := range []struct {
		found   Space
		failure error
		starts  bool
		logged  int // lines so far
	}{
		{Space{5 * gib, 10 * gib}, nil, true, 0},
		{Space{leastSpace, 2 * gib}, nil, true, 0},
		{Space{leastSpace - 1, 2 * gib}, nil, false, 1},
		{Space{0, 2 * gib}, nil, false, 1},
		{Space{2 * gib, 30 * gib}, nil, false, 1}, // less than a tenth is free
		{Space{3 * gib, 30 * gib}, nil, true, 2},
		{Space{4 * gib, 1000 * gib}, nil, true, 2}, // at least ampleSpace: a laptop with a few free GiB can be used
		{Space{}, errors.New("no such folder"), false, 3},
		{Space{5 * gib, 10 * gib}, nil, true, 4},
	} {
		found, failure, started.count = c.found, c.failure, 0
		now = now.Add(diskReadingAge)
		before := reads
		for range 3 { // the space is not read again within diskReadingAge
			_, err := turns.StartTurn(t.Context(), nil)
			if c.starts != (err == nil) || !c.starts && protocol.CodeOf(err) != protocol.CodeUnavailable {
				t.Errorf("%d: StartTurn returned %v", i, err)
			}
			if ready := guard.Probe(t.Context()); c.starts != (ready == nil) {
				t.Errorf("%d: the probe returned %v", i, ready)
			}
		}
		if reads != before+1 || c.starts != (started.count == 3) || !c.starts && started.count != 0 {
			t.Errorf("%d: read the space %d times, started %d turns", i, reads-before, started.count)
		}
		if lines.Len() != c.logged {
			t.Errorf("%d: %d lines in the log, want %d: %v", i, lines.Len(), c.logged, lines.All())
		}
	}
}

func TestNoObjectIsStoredWhileTheDiskIsNearlyFull(t *testing.T) {
	local, err := disk.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = local.Close() }()
	guard := New("", "new files", zap.NewNop())
	full := true
	guard.read = func() (Space, error) {
		if full {
			return Space{leastSpace - 1, 2 * leastSpace}, nil
		}
		return Space{ampleSpace, 2 * ampleSpace}, nil
	}
	store := Store{local, func() error { return guard.Refuse("New files are refused.") }}
	_, err = store.Put(t.Context(), "a", strings.NewReader("x"), 1)
	if protocol.CodeOf(err) != protocol.CodeUnavailable || !strings.Contains(err.Error(), "nearly full") {
		t.Errorf("got %v", err)
	}
	full, guard.at = false, time.Time{}
	if _, err = store.Put(t.Context(), "a", strings.NewReader("x"), 1); err != nil {
		t.Error(err)
	}
}
