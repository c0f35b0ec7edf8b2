package search

import (
	"time"

	"github.com/riverqueue/river"

	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
)

// Store finds and indexes texts. Its methods may be called from any goroutine.
type Store struct {
	db  *pg.DB
	few int // see fewRows
	// longTexts has a slot for each long text that is read at the same time, so that searches of the longest texts leave
	// processor time for all other requests. A search waits for a slot as long as its context permits.
	longTexts chan struct{}
}

const longSlots = 1

// New returns a store without state in memory, besides the slots for long texts.
func New(db *pg.DB) *Store { return &Store{db, fewRows, make(chan struct{}, longSlots)} }

// indexInterval is how often pending texts are indexed. A search reads the pending texts of its account, so the interval
// does not delay what it finds.
const indexInterval = 5 * time.Second

// indexArgs is the job that indexes pending texts.
type indexArgs struct{}

func (indexArgs) Kind() string { return "index_search" }

func (indexArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: jobs.UrgentQueue} }

// IndexJob returns the job that indexes pending texts.
func (s *Store) IndexJob() jobs.Job {
	return jobs.New(s.runIndex).Every(indexInterval, indexArgs{})
}
