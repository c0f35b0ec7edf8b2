package journal

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

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

const (
	defaultJournalWriters = 2
	// maxJournalBatch and maxJournalBytes limit one statement; further appends go into the next one.
	maxJournalBatch = 512
	maxJournalBytes = 4 << 20

	// journalWait is how long deferrable appends wait for each other: about the time in which the turns that wake
	// together on a busy node submit their appends.
	journalWait = time.Millisecond

	journalRetryLeast = 20 * time.Millisecond
	journalRetryMost  = time.Second
	// splitAfterRefusals is the number of consecutive refusals of a batch, other than for its data or in an outage,
	// after which each append gets a separate statement. maxRefusals is that number for a single append, which is then
	// given up after about 2 s.
	splitAfterRefusals = 2
	maxRefusals        = 8
	// maxRereads limits how often an append is retried although the row of its turn looks unchanged and owned by
	// the appender; then the append counts as fenced.
	maxRereads = 5
)

// Stats counts the work of a journal. All fields may be read at any time.
type Stats struct {
	Appends    atomic.Int64 // stored
	Batches    atomic.Int64 // statements that stored
	Bytes      atomic.Int64 // of frames, stored
	Retries    atomic.Int64 // statements repeated after a database error
	Recovered  atomic.Int64 // appends found committed although the reply was lost
	Fenced     atomic.Int64
	Refused    atomic.Int64 // appends that were given up because they cannot be stored
	Waiting    atomic.Int64 // submitted and not completed
	LastBatch  atomic.Int64 // size of the latest statement
	MaxBatched atomic.Int64 // largest so far
}

// Options are optional. A writer calls OnBatch after each statement that stored appends, and OnAppend for each append that
// it stored, with the time since the append was submitted. They must neither block nor allocate.
type Options struct {
	Writers  int
	OnBatch  func(size int, took time.Duration)
	OnAppend func(took time.Duration)
	Logger   *zap.Logger
}

// Journal is the group commit of a node: actors submit appends; a few writers take the queued appends and store them
// with one statement.
//
// Order: appends of one turn are stored in the order in which they were submitted, and never share a statement. Loss:
// done is called exactly once for each append. A database error does not complete an append: the same bytes are retried
// until they are stored, fenced or given up as impossible to store, or until the journal is closed. Slow database:
// appends wait in the queue, at most one for each running actor. Concurrency: all methods may be called from any
// goroutine; a writer calls done, so a slow callback delays that writer.
type Journal struct {
	// Set by New.
	db      *pg.DB
	options Options
	log     *zap.Logger
	closing context.Context
	stop    context.CancelFunc
	writers sync.WaitGroup
	stats   Stats

	// Guarded by mu.
	mu        sync.Mutex
	wake      *sync.Cond
	queue     []*journalEntry
	due       bool                 // the queue is to be written without further waiting
	waitTimer *time.Timer          // sets due; created with the first deferrable append
	busy      map[turnKey]struct{} // turns with an append in flight
	closed    bool
}

type turnKey struct {
	account protocol.AccountID
	turn    protocol.TurnID
}

type journalEntry struct {
	*turnlog.Append
	done      func(error)
	submitted time.Time // zero without Options.OnAppend
	rereads   int
	refusals  int // of a statement with this append alone
}

func (e *journalEntry) key() turnKey { return turnKey{e.AccountID, e.TurnID} }

// New starts the writers. Close stops them.
func New(db *pg.DB, options Options) *Journal {
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

// Stats returns the counters of the journal, which continue to change.
func (j *Journal) Stats() *Stats { return &j.stats }

// Append submits a batch and returns at once. done is called once: with nil if the batch is stored, ownership.ErrFenced,
// the error that makes the batch impossible to store, or protocol.CodeUnavailable if the journal is closed.
func (j *Journal) Append(batch *turnlog.Append, done func(error)) {
	entry := &journalEntry{Append: batch, done: done}
	if j.options.OnAppend != nil {
		entry.submitted = time.Now()
	}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		done(errJournalClosed)
		return
	}
	j.stats.Waiting.Add(1)
	j.queue = append(j.queue, entry)
	due := j.expect(batch.Deferrable)
	j.mu.Unlock()
	if due {
		j.wake.Signal()
	}
}

// expect reports whether the newest append of the queue is to be written at once, together with all that wait.
// Otherwise it starts the timer for the first waiting append.
func (j *Journal) expect(deferrable bool) bool {
	switch {
	case !deferrable || len(j.queue) >= maxJournalBatch:
		j.due = true
	case !j.due && len(j.queue) == 1 && j.waitTimer == nil:
		j.waitTimer = time.AfterFunc(journalWait, j.endWait)
	case !j.due && len(j.queue) == 1:
		j.waitTimer.Reset(journalWait)
	}
	return j.due
}

// endWait ends the wait of deferrable appends. The timer calls it.
func (j *Journal) endWait() {
	j.mu.Lock()
	j.due = len(j.queue) > 0
	due := j.due
	j.mu.Unlock()
	if due {
		j.wake.Signal()
	}
}

var errJournalClosed = &protocol.Error{Code: protocol.CodeUnavailable, Detail: "the journal is closed", RetryAfter: pg.RetrySeconds}

// Close completes waiting appends with protocol.CodeUnavailable, lets statements in flight end, and waits for the
// writers.
func (j *Journal) Close() {
	j.mu.Lock()
	queue := j.queue
	j.queue, j.closed = nil, true
	j.mu.Unlock()
	j.stop()
	j.wake.Broadcast()
	for _, entry := range queue {
		j.complete(entry, errJournalClosed)
	}
	j.writers.Wait()
}

// complete completes an append.
func (j *Journal) complete(entry *journalEntry, err error) {
	j.stats.Waiting.Add(-1)
	entry.done(err)
}

// write runs one writer until the journal is closed.
func (j *Journal) write() {
	for batch := j.take(); batch != nil; batch = j.take() {
		j.store(batch)
		j.release(batch)
	}
}

// take waits for appends and returns those that fit into one statement; nil if the journal is closed.
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

// pick removes the next batch from the queue. The second append of a turn keeps its position in the queue until the
// first one is completed.
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

// release allows further appends of the turns of a batch.
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

// store retries a batch, unchanged, until every entry is completed; in an outage without a limit. After an error that
// is caused by the data, or repeated other errors, each entry gets a separate statement, so that only the bad one
// fails.
func (j *Journal) store(batch []*journalEntry) {
	delay, refusals := journalRetryLeast, 0
	for {
		open, err := j.try(batch)
		if len(open) == 0 {
			return
		}
		if refusals++; err == nil || pg.IsTransient(err) {
			refusals = 0
		}
		if pg.IsRefusedData(err) || refusals >= splitAfterRefusals {
			j.storeSeparately(open, err)
			return
		}
		if !j.waitToRetry(open, delay, err) {
			return
		}
		batch, delay = open, min(delay*2, journalRetryMost)
	}
}

// waitToRetry waits before the open entries are retried. It returns false if the journal is closed; the entries are
// then completed.
func (j *Journal) waitToRetry(open []*journalEntry, delay time.Duration, err error) bool {
	if err != nil {
		j.stats.Retries.Add(1)
		j.log.Warn("journal: retrying appends", zap.Int("appends", len(open)), zap.Error(err))
	}
	if clock.Sleep(j.closing, delay) == nil {
		return true
	}
	for _, entry := range open {
		j.complete(entry, pg.UnknownOutcome(errors.Join(errJournalClosed, err)))
	}
	return false
}

// storeSeparately stores entries one by one. The refused entries are retried together after a delay, so that none of
// them blocks the good ones.
func (j *Journal) storeSeparately(batch []*journalEntry, err error) {
	if len(batch) == 1 && pg.IsRefusedData(err) { // it already had a separate statement
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
			if entry.refusals++; failed == nil || pg.IsTransient(failed) {
				entry.refusals = 0
			}
			if pg.IsRefusedData(failed) || entry.refusals >= maxRefusals {
				j.refuse(entry, failed)
				continue
			}
			open, err = append(open, entry), failed
		}
		if len(open) == 0 || !j.waitToRetry(open, delay, err) {
			return
		}
		batch = open
	}
}

// refuse completes an append that cannot be stored with its error. The actor then gives up the turn, and the turn is
// claimed again.
func (j *Journal) refuse(entry *journalEntry, err error) {
	j.stats.Refused.Add(1)
	j.log.Error("journal: refusing an append", zap.Stringer("turn_id", entry.TurnID), zap.Error(err))
	j.complete(entry, fmt.Errorf("appending to a turn: %w", err))
}

// try runs the statement once and completes the entries whose outcome is known. It returns the other entries.
func (j *Journal) try(batch []*journalEntry) (open []*journalEntry, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), pg.RequestTimeout)
	defer cancel()
	conn, err := pg.Acquire(ctx, j.db.Engine)
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
		return batch, pg.MarkLost(conn.Conn(), err)
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
	j.measure(batch, stored)
	for i, entry := range batch {
		if stored[i] {
			j.complete(entry, nil)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	positions, err := readPositions(ctx, conn, missing)
	if err != nil {
		return missing, pg.MarkLost(conn.Conn(), err)
	}
	return j.resolveMissing(missing, positions), nil
}

// measure reports how long the stored appends of a batch took. It reads the clock once.
func (j *Journal) measure(batch []*journalEntry, stored []bool) {
	if j.options.OnAppend == nil {
		return
	}
	now := time.Now()
	for i, entry := range batch {
		if stored[i] {
			j.options.OnAppend(now.Sub(entry.submitted))
		}
	}
}

// count adds a statement to the counters.
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

// resolveMissing decides about the entries that the statement did not store, because the rows of their turns had other
// values than expected. It returns the entries to be retried.
func (j *Journal) resolveMissing(missing []*journalEntry, positions map[turnKey]Position) (open []*journalEntry) {
	for _, entry := range missing {
		position, found := positions[entry.key()]
		ours := found && position.Owner != nil && *position.Owner == entry.Owner && position.Epoch == entry.Epoch
		switch {
		case ours && position.Next > entry.Last: // stored by an attempt whose reply was lost
			j.stats.Recovered.Add(1)
			hash := sha256.Sum256(entry.Frames) // the crash test compares it with the stored frames
			j.log.Info("journal: an append whose reply was lost is stored", zap.Stringer("turn_id", entry.TurnID), zap.Int64("first", entry.First),
				zap.Int64("last", entry.Last), zap.String("frames_sha256", hex.EncodeToString(hash[:])))
			j.complete(entry, nil)
		case ours && position.Next == entry.First && !position.State.Terminal() && entry.rereads < maxRereads:
			entry.rereads++ // the row got these values between the statement and this read
			open = append(open, entry)
		default:
			j.stats.Fenced.Add(1)
			j.log.Info("journal: fenced", zap.Stringer("turn_id", entry.TurnID), zap.Int32("epoch", entry.Epoch),
				zap.Int64("sequence", entry.First), zap.Bool("found", found))
			j.complete(entry, ownership.ErrFenced)
		}
	}
	return open
}
