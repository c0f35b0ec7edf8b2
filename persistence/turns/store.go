package turns

import (
	"go.uber.org/zap"

	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/jobs"
	"turnstone/persistence/journal"
	"turnstone/persistence/pg"
	"turnstone/protocol/recent"
	"turnstone/protocol/turnlog"
)

// Options are optional.
type Options struct {
	Journal journal.Options
	Logger  *zap.Logger
}

// Store stores turns: it starts, ends and reads them, and appends to their logs. Its methods may be called from any
// goroutine.
type Store struct {
	db            *pg.DB
	queue         *jobs.Queue
	keys          *idempotency.Store
	conversations *conversations.Store

	journal *journal.Journal
	log     *zap.Logger
	starts  pg.Batcher[*sharedStart]

	histories *recent.Cache[historyKey, history]
}

// New starts a journal. Close stops it.
func New(db *pg.DB, queue *jobs.Queue, keys *idempotency.Store, conversations *conversations.Store, options Options) *Store {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	if options.Journal.Logger == nil {
		options.Journal.Logger = options.Logger
	}
	t := &Store{
		db: db, queue: queue, keys: keys, conversations: conversations,
		journal: journal.New(db, options.Journal), log: options.Logger,
		histories: recent.New[historyKey, history](maxHistories, historyIdle),
	}
	t.starts = pg.Batcher[*sharedStart]{MaxInFlight: sharedStarts, MaxGroup: maxSharedStart, MaxWait: maxStartWait, Work: t.runStartGroup}
	return t
}

// Close closes the journal; waiting appends are completed with protocol.CodeUnavailable.
func (t *Store) Close() { t.journal.Close() }

// JournalStats returns the counters of the journal, which continue to change.
func (t *Store) JournalStats() *journal.Stats { return t.journal.Stats() }

// Append submits a batch to the journal; see Journal.Append.
func (t *Store) Append(batch *turnlog.Append, done func(error)) { t.journal.Append(batch, done) }
