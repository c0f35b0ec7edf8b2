package http

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/persistence"
	"turnstone/protocol"
)

// record counts an event of the audit that strangers, or a page in somebody's browser, can cause at will. It writes no
// row: writeTallies does, one for all that came in a minute. It never changes the response.
func (s *Server) record(ex *exchange, event persistence.SecurityEvent) {
	if ex.caller == nil {
		s.tallies.add(persistence.Nobody, event, "")
		return
	}
	s.tallies.add(ex.caller.AccountID, event, addressKey(ex.address))
}

const (
	tallyEvery   = time.Minute
	tallyTimeout = 5 * time.Second
	maxTallies   = 10_000 // a minute; what comes beyond is counted for nobody
)

// tallies count what is too frequent for an entry each. They become one entry per account, event, address and minute.
type tallies struct {
	mu     sync.Mutex
	counts map[tally]int // guarded by mu
}

type tally struct {
	account protocol.AccountID
	event   persistence.SecurityEvent
	address string // empty: not told apart
}

func (t *tallies) add(account protocol.AccountID, event persistence.SecurityEvent, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[tally]int{}
	}
	one := tally{account, event, address}
	if _, counted := t.counts[one]; !counted && len(t.counts) >= maxTallies {
		one = tally{account: persistence.Nobody, event: event}
	}
	t.counts[one]++
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
		err := s.DB.Record(ctx, tally.account, tally.event, nil, map[string]any{"count": count}, persistence.Requester{Address: tally.address})
		if err != nil {
			s.log.Error("a count for the audit was not stored", zap.String("event", string(tally.event)), zap.Int("count", count), zap.Error(err))
		}
	}
}
