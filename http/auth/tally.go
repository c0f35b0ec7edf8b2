package auth

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Recorder records security events for the audit.
type Recorder struct {
	audit   Audit
	log     *zap.Logger
	tallies tallies
}

// Record counts an audit event that a stranger, or a page in a user's browser, can cause any number of times. It writes
// no row; WriteTallies writes one row for all such events of a minute. It never changes the response.
func (rec *Recorder) Record(req *Request, event audit.SecurityEvent) {
	if req.Caller == nil {
		rec.tallies.add(pg.NoAccount, event, "")
		return
	}
	rec.tallies.add(req.Caller.AccountID, event, AddressKey(req.Address))
}

const (
	// TallyInterval is the interval at which WriteTallies has to be called.
	TallyInterval = time.Minute
	tallyTimeout  = 5 * time.Second
	maxTallies    = 10_000 // per minute; beyond it, events are counted without account and address
)

// tallies count events that are too frequent for one entry per event. They become one entry per account, event, address
// and minute.
type tallies struct {
	mu     sync.Mutex
	counts map[tally]int // guarded by mu
}

type tally struct {
	account protocol.AccountID
	event   audit.SecurityEvent
	address string // empty: any
}

func (t *tallies) add(account protocol.AccountID, event audit.SecurityEvent, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[tally]int{}
	}
	key := tally{account, event, address}
	if _, counted := t.counts[key]; !counted && len(t.counts) >= maxTallies {
		key = tally{account: pg.NoAccount, event: event}
	}
	t.counts[key]++
}

func (t *tallies) take() map[tally]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.counts
	t.counts = nil
	return taken
}

// WriteTallies stores the counts. It logs a count that cannot be stored.
func (rec *Recorder) WriteTallies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tallyTimeout)
	defer cancel()
	for tally, count := range rec.tallies.take() {
		err := rec.audit.Record(ctx, tally.account, tally.event, nil, map[string]any{"count": count}, audit.Requester{Address: tally.address})
		if err != nil {
			rec.log.Error("a count for the audit could not be stored", zap.String("event", string(tally.event)), zap.Int("count", count), zap.Error(err))
		}
	}
}
