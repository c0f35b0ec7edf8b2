package persistence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

const (
	defaultJournalWriters = 2
	// maxJournalBatch and maxJournalBytes bound one statement; what does not fit is the next one.
	maxJournalBatch = 512
	maxJournalBytes = 4 << 20

	// journalGather is how long patient appends wait for each other: about as long as the turns that a busy node wakes
	// together take to hand in theirs.
	journalGather = time.Millisecond

	journalRetryLeast = 20 * time.Millisecond
	journalRetryMost  = time.Second
	// journalApart is how often in a row a batch may be refused, other than for its data or in an outage, before each append
	// gets a statement of its own; journalAttempts is how often an append alone may be, which is after about 2 s.
	journalApart    = 2
	journalAttempts = 8
	// journalRereads bounds how often a row that looks ours and untouched is tried again before it counts as fenced.
	journalRereads = 5
)

// JournalStats counts what a journal did. All may be read at any time.
type JournalStats struct {
	Appends    atomic.Int64 // stored
	Batches    atomic.Int64 // statements that stored
	Bytes      atomic.Int64 // of frames, stored
	Retries    atomic.Int64 // statements repeated after a database error
	Recovered  atomic.Int64 // appends found committed though their answer was lost
	Fenced     atomic.Int64
	Refused    atomic.Int64 // appends that were impossible in themselves
	Waiting    atomic.Int64 // handed in and not answered
	LastBatch  atomic.Int64 // size of the latest statement
	MaxBatched atomic.Int64 // largest so far
}

// JournalOptions are optional. OnBatch is called after each stored statement, from a writer.
type JournalOptions struct {
	Writers int
	OnBatch func(size int, took time.Duration)
	Logger  *zap.Logger
}

// Journal is the group commit of a node: actors hand in appends, a few writers take what has gathered and store it with
// one statement.
//
// Order: appends of one turn are stored in the order in which they were handed in, and never share a statement. Loss: an
// append is answered exactly once; a database error is no answer, the same bytes are tried again until they are stored,
// fenced, or the journal is closed. Slow database: appends wait here, at most one for each living actor. Concurrency: all
// methods may be called from any goroutine; answers come from the writers, which a slow callback holds up.
type Journal struct {
	// Set by NewJournal.
	db      *DB
	options JournalOptions
	log     *zap.Logger
	closing context.Context
	stop    context.CancelFunc
	writers sync.WaitGroup
	stats   JournalStats

	// Guarded by mu.
	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*journalEntry
	due    bool                 // what the queue holds waits for no more company
	gather *time.Timer          // makes it due; set once something patient came
	busy   map[turnKey]struct{} // turns in a statement that is under way
	closed bool
}

type turnKey struct {
	account protocol.AccountID
	turn    protocol.TurnID
}

type journalEntry struct {
	*protocol.TurnAppend
	done     func(error)
	rereads  int
	refusals int // of the append alone
}

func (e *journalEntry) key() turnKey { return turnKey{e.AccountID, e.TurnID} }

// NewJournal starts the writers. Close ends them.
func NewJournal(db *DB, options JournalOptions) *Journal {
	if options.Writers <= 0 {
		options.Writers = defaultJournalWriters
	}
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	j := &Journal{db: db, options: options, log: options.Logger, busy: map[turnKey]struct{}{}}
	j.wake = sync.NewCond(&j.mu)
	j.closing, j.stop = context.WithCancel(context.Background())
	for range options.Writers {
		j.writers.Go(j.write)
	}
	return j
}

// Stats is live.
func (j *Journal) Stats() *JournalStats { return &j.stats }

// Append hands in a batch and returns at once. done is called once: nil when it is stored, protocol.ErrFenced, what made
// the batch impossible, or protocol.CodeUnavailable when the journal is closed.
func (j *Journal) Append(batch *protocol.TurnAppend, done func(error)) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		done(errJournalClosed)
		return
	}
	j.stats.Waiting.Add(1)
	j.queue = append(j.queue, &journalEntry{TurnAppend: batch, done: done})
	due := j.expect(batch.Patient)
	j.mu.Unlock()
	if due {
		j.wake.Signal()
	}
}

// expect says whether the newest append of the queue is to be written at once, and with it all that waits.
func (j *Journal) expect(patient bool) bool {
	switch {
	case !patient || len(j.queue) >= maxJournalBatch:
		j.due = true
	case !j.due && len(j.queue) == 1 && j.gather == nil:
		j.gather = time.AfterFunc(journalGather, j.gathered)
	case !j.due && len(j.queue) == 1:
		j.gather.Reset(journalGather)
	}
	return j.due
}

// gathered ends the wait of patient appends.
func (j *Journal) gathered() {
	j.mu.Lock()
	j.due = len(j.queue) > 0
	due := j.due
	j.mu.Unlock()
	if due {
		j.wake.Signal()
	}
}

var errJournalClosed = &protocol.Error{Code: protocol.CodeUnavailable, Detail: "the journal is closed", RetryAfter: retrySeconds}

// Close answers what waits with protocol.CodeUnavailable, lets statements under way end, and waits for the writers.
func (j *Journal) Close() {
	j.mu.Lock()
	queue := j.queue
	j.queue, j.closed = nil, true
	j.mu.Unlock()
	j.stop()
	j.wake.Broadcast()
	for _, entry := range queue {
		j.answer(entry, errJournalClosed)
	}
	j.writers.Wait()
}

func (j *Journal) answer(entry *journalEntry, err error) {
	j.stats.Waiting.Add(-1)
	entry.done(err)
}

func (j *Journal) write() {
	for batch := j.take(); batch != nil; batch = j.take() {
		j.store(batch)
		j.release(batch)
	}
}

// take waits for work and takes all that fits one statement; nil when the journal is closed.
func (j *Journal) take() []*journalEntry {
	j.mu.Lock()
	defer j.mu.Unlock()
	for !j.closed {
		if batch := j.pick(); batch != nil {
			return batch
		}
		j.wake.Wait()
	}
	return nil
}

// pick leaves the second append of a turn in the queue, in its place, until the first was answered.
func (j *Journal) pick() []*journalEntry {
	if !j.due {
		return nil
	}
	batch := make([]*journalEntry, 0, min(len(j.queue), maxJournalBatch))
	size, rest := 0, j.queue[:0]
	for i, entry := range j.queue {
		if len(batch) == maxJournalBatch || size >= maxJournalBytes {
			rest = append(rest, j.queue[i:]...)
			break
		}
		if _, waits := j.busy[entry.key()]; waits {
			rest = append(rest, entry)
			continue
		}
		j.busy[entry.key()] = struct{}{}
		batch = append(batch, entry)
		size += len(entry.Frames)
	}
	clear(j.queue[len(rest):])
	j.queue, j.due = rest, len(rest) > 0
	if len(batch) == 0 {
		return nil
	}
	return batch
}

func (j *Journal) release(batch []*journalEntry) {
	j.mu.Lock()
	for _, entry := range batch {
		delete(j.busy, entry.key())
	}
	more := len(j.queue) > 0
	j.mu.Unlock()
	if more {
		j.wake.Signal()
	}
}

// store repeats a batch, unchanged, until every entry of it was answered: in an outage without a limit. After any other
// error, entries get a statement each, so that only the bad one fails.
func (j *Journal) store(batch []*journalEntry) {
	delay, refusals := journalRetryLeast, 0
	for {
		open, err := j.try(batch)
		if len(open) == 0 {
			return
		}
		if refusals++; err == nil || transient(err) {
			refusals = 0
		}
		if impossible(err) || refusals >= journalApart {
			j.storeApart(open, err)
			return
		}
		if !j.again(open, delay, err) {
			return
		}
		batch, delay = open, min(delay*2, journalRetryMost)
	}
}

// again waits before open entries are repeated; false when the journal closes, which answers them.
func (j *Journal) again(open []*journalEntry, delay time.Duration, err error) bool {
	if err != nil {
		j.stats.Retries.Add(1)
		j.log.Warn("journal: repeating appends", zap.Int("appends", len(open)), zap.Error(err))
	}
	if pause(j.closing, delay) {
		return true
	}
	for _, entry := range open {
		j.answer(entry, outcomeUnknown(errors.Join(errJournalClosed, err)))
	}
	return false
}

// storeApart stores entries one by one. Those that are refused wait for each other, so that none holds up the good ones.
func (j *Journal) storeApart(batch []*journalEntry, err error) {
	if len(batch) == 1 && impossible(err) { // by a statement of its own already
		j.refuse(batch[0], err)
		return
	}
	for delay := journalRetryLeast; ; delay = min(delay*2, journalRetryMost) {
		var open []*journalEntry
		for _, entry := range batch {
			left, failed := j.try([]*journalEntry{entry})
			if len(left) == 0 {
				continue
			}
			if entry.refusals++; failed == nil || transient(failed) {
				entry.refusals = 0
			}
			if impossible(failed) || entry.refusals >= journalAttempts {
				j.refuse(entry, failed)
				continue
			}
			open, err = append(open, entry), failed
		}
		if len(open) == 0 || !j.again(open, delay, err) {
			return
		}
		batch = open
	}
}

// refuse answers an append that cannot be stored. Its actor gives the turn up, and the turn is claimed again.
func (j *Journal) refuse(entry *journalEntry, err error) {
	j.stats.Refused.Add(1)
	j.log.Error("journal: refusing an append", zap.Stringer("turn_id", entry.TurnID), zap.Error(err))
	j.answer(entry, fmt.Errorf("appending to a turn: %w", err))
}

// impossible reports whether the data itself was refused: data exceptions and integrity violations.
func impossible(err error) bool { return isClass(err, "22") || isClass(err, "23") }

// try runs the statement once and answers the entries whose fate is known; the others are left open.
func (j *Journal) try(batch []*journalEntry) (open []*journalEntry, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	conn, err := acquire(ctx, j.db.engine)
	if err != nil {
		return batch, err
	}
	defer conn.Release()
	began := time.Now()
	if err := failpoint.Before(failpoint.JournalBeforeAppend); err != nil {
		return batch, err
	}
	stored, err := appendBatch(ctx, conn.Conn(), batch)
	if err = failpoint.After(failpoint.JournalBeforeAppend, err); err != nil {
		return batch, lost(conn.Conn(), err)
	}
	var missing []*journalEntry
	bytes := 0
	for i, entry := range batch {
		if stored[i] {
			bytes += len(entry.Frames)
			continue
		}
		missing = append(missing, entry)
	}
	j.count(len(batch)-len(missing), bytes, time.Since(began))
	for i, entry := range batch {
		if stored[i] {
			j.answer(entry, nil)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	places, err := readPlaces(ctx, conn, missing)
	if err != nil {
		return missing, lost(conn.Conn(), err)
	}
	return j.judge(missing, places), nil
}

func (j *Journal) count(stored, bytes int, took time.Duration) {
	if stored == 0 {
		return
	}
	j.stats.Appends.Add(int64(stored))
	j.stats.Batches.Add(1)
	j.stats.Bytes.Add(int64(bytes))
	j.stats.LastBatch.Store(int64(stored))
	if most := j.stats.MaxBatched.Load(); int64(stored) > most {
		j.stats.MaxBatched.CompareAndSwap(most, int64(stored))
	}
	if j.options.OnBatch != nil {
		j.options.OnBatch(stored, took)
	}
}

// judge decides about entries whose turn was not where the statement looked for it.
func (j *Journal) judge(missing []*journalEntry, places map[turnKey]turnPlace) (open []*journalEntry) {
	for _, entry := range missing {
		place, found := places[entry.key()]
		ours := found && place.owner != nil && *place.owner == entry.Owner && place.epoch == entry.Epoch
		switch {
		case ours && place.next > entry.Last: // stored by an attempt whose answer was lost
			j.stats.Recovered.Add(1)
			hash := sha256.Sum256(entry.Frames) // the crash tester compares it with what is stored
			j.log.Info("journal: an append without an answer is stored", zap.Stringer("turn_id", entry.TurnID), zap.Int64("first", entry.First),
				zap.Int64("last", entry.Last), zap.String("frames_sha256", hex.EncodeToString(hash[:])))
			j.answer(entry, nil)
		case ours && place.next == entry.First && !place.state.Terminal() && entry.rereads < journalRereads:
			entry.rereads++ // it moved here between the statement and this look
			open = append(open, entry)
		default:
			j.stats.Fenced.Add(1)
			j.log.Info("journal: fenced", zap.Stringer("turn_id", entry.TurnID), zap.Int32("epoch", entry.Epoch),
				zap.Int64("sequence", entry.First), zap.Bool("found", found))
			j.answer(entry, protocol.ErrFenced)
		}
	}
	return open
}
