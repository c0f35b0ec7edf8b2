package http

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/persistence"
	"turnstone/protocol"
)

// record writes an entry about a refusal. It never changes the answer: the request is refused whether or not the entry
// could be stored. What strangers can cause at will is counted instead, so that nobody fills the audit from outside.
func (s *Server) record(ctx context.Context, ex *exchange, event persistence.SecurityEvent) {
	if ex.caller == nil {
		s.tallies.add(persistence.Nobody, event)
		return
	}
	if err := s.DB.Record(ctx, ex.caller.AccountID, event, &ex.caller.SessionID, nil, ex.requester()); err != nil {
		s.log.Error("an entry of the audit was not stored", zap.String("request_id", ex.requestID),
			zap.String("event", string(event)), zap.Error(err))
	}
}

const (
	tallyEvery   = time.Minute
	tallyTimeout = 5 * time.Second
	maxTallies   = 10_000 // accounts a minute; what comes beyond is counted for nobody
)

// tallies count what is too frequent for an entry each. They become one entry an account and minute.
type tallies struct {
	mu     sync.Mutex
	counts map[tally]int // guarded by mu
}

type tally struct {
	account protocol.AccountID
	event   persistence.SecurityEvent
}

func (t *tallies) add(account protocol.AccountID, event persistence.SecurityEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[tally]int{}
	}
	if len(t.counts) >= maxTallies {
		account = persistence.Nobody
	}
	t.counts[tally{account, event}]++
}

func (t *tallies) take() map[tally]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.counts
	t.counts = nil
	return taken
}

// writeTallies stores what was counted. What cannot be stored is in the log.
func (s *Server) writeTallies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tallyTimeout)
	defer cancel()
	for tally, count := range s.tallies.take() {
		err := s.DB.Record(ctx, tally.account, tally.event, nil, map[string]any{"count": count}, persistence.Requester{})
		if err != nil {
			s.log.Error("a count for the audit was not stored", zap.String("event", string(tally.event)), zap.Int("count", count), zap.Error(err))
		}
	}
}
