package feed

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/zap"

	"turnstone/actors/tail"
	"turnstone/persistence/feed"
	"turnstone/protocol"
)

// emptyStore is a feed without items that was read up to a position.
type emptyStore struct{ end feed.Position }

func (s emptyStore) Read(context.Context, protocol.AccountID, feed.Position, int) (*feed.Page, error) {
	return &feed.Page{End: s.end}, nil
}

func (s emptyStore) Tail(context.Context, feed.Position, int) (*feed.Page, error) {
	return &feed.Page{End: s.end}, nil
}

// A reader that resumes has to read the store once. What it does not find is no heartbeat.
func TestAReaderThatFindsNoItemsSaysSo(t *testing.T) {
	present := feed.Position{Transaction: 9}
	hub := NewHub(emptyStore{present}, func() bool { return false }, zap.NewNop())
	reader := hub.Follow(protocol.NewAccountID(), feed.Position{Transaction: 5}, present, func([]byte, []feed.Item) ([]byte, error) { return nil, nil })
	defer reader.Leave()
	waker := make(tail.Signal, 1)
	if _, taken := reader.Take(waker, nil); taken != tail.TakenNotInMemory {
		t.Fatalf("before the read: %v", taken)
	}
	if events, ended, err := reader.Next(t.Context(), nil); len(events) > 0 || ended || !errors.Is(err, tail.ErrNone) {
		t.Errorf("the read returns %q, %v, %v", events, ended, err)
	}
	if _, taken := reader.Take(waker, nil); taken != tail.TakenCaughtUp {
		t.Errorf("after the read: %v", taken)
	}
}
