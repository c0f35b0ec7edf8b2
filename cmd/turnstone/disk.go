package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"turnstone/http/chat"
	"turnstone/persistence/objects"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const (
	// leastSpace and leastShare define when a disk is nearly full. Without space for its log Postgres stops and cannot
	// start again until there is some. The margin is for the turns that are live then, whose events must still be
	// stored.
	leastSpace = 1 << 30 // bytes
	leastShare = 0.1     // of the disk; see ampleSpace
	// ampleSpace is enough free space on a disk of any size, in bytes: twice max_wal_size, and 2 MiB for each of 1,000
	// live turns.
	ampleSpace = 4 << 30

	// diskReadingAge is how long a reading of the free space is reused. Concurrent requests therefore query the system
	// at most once a second, and /ready reports a full disk within its limit of three seconds.
	diskReadingAge = time.Second
	// diskRetry is the Retry-After of a refused request, in seconds: space rarely becomes free within a second.
	diskRetry = 30
)

// space is the free and the total space of a disk, in bytes.
type space struct{ free, all uint64 }

func readSpace(folder string) (space, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return space{}, fmt.Errorf("reading the free space at %s: %w", folder, err)
	}
	return space{free: disk.Bavail * uint64(disk.Bsize), all: disk.Blocks * uint64(disk.Bsize)}, nil
}

// check returns an error with the figures if too little space is free.
func (s space) check() error {
	if s.free < leastSpace || s.free < ampleSpace && float64(s.free) < leastShare*float64(s.all) {
		return fmt.Errorf("%d of %d MiB are free", s.free>>20, s.all>>20)
	}
	return nil
}

// diskGuard watches the disk of a private Postgres, or of the local object store. While too little space is free, it
// refuses new turns, or new files. Live turns continue, follow-ups that were already accepted into a queue still start,
// and reads are served. A disk whose free space cannot be read counts as full.
//
// Concurrency: its methods may be called from any goroutine.
type diskGuard struct {
	// Set by newDiskGuard.
	read func() (space, error)
	now  func() time.Time
	what string // that is refused, for the log
	log  *zap.Logger

	mu   sync.Mutex
	at   time.Time // guarded by mu: time of the last reading
	last space     // guarded by mu
	err  error     // guarded by mu: why what is refused; nil: it is not
}

func newDiskGuard(folder, what string, log *zap.Logger) *diskGuard {
	return &diskGuard{read: func() (space, error) { return readSpace(folder) }, now: time.Now, what: what, log: log.Named("disk")}
}

// check returns the last reading, or a new one if that is older than diskReadingAge. It logs each change between full
// and not full once.
func (g *diskGuard) check() (space, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if !g.at.IsZero() && now.Sub(g.at) < diskReadingAge {
		return g.last, g.err
	}
	previous := g.err
	g.at = now
	if g.last, g.err = g.read(); g.err == nil {
		g.err = g.last.check()
	}
	switch {
	case previous == nil && g.err != nil:
		g.log.Error("the disk is nearly full: "+g.what+" are refused", zap.Error(g.err))
	case previous != nil && g.err == nil:
		g.log.Info("the disk has free space again: "+g.what+" are accepted", zap.Uint64("free_mib", g.last.free>>20))
	}
	return g.last, g.err
}

// probe is the disk check of /ready.
func (g *diskGuard) probe(context.Context) error {
	_, err := g.check()
	return err
}

// guardedTurns refuses to start turns while the disk is nearly full.
type guardedTurns struct {
	chat.Turns
	disk *diskGuard
}

// StartTurn implements chat.Turns. It returns protocol.CodeUnavailable while the disk is nearly full. A repeated start
// whose turn exists is resolved before this is called.
func (t guardedTurns) StartTurn(ctx context.Context, start *turnlog.Start) (*turnlog.StartResult, error) {
	if err := t.checkSpace(); err != nil {
		return nil, err
	}
	return t.Turns.StartTurn(ctx, start)
}

// ChangeFollowUp implements chat.Turns. While the disk is nearly full it refuses to set a follow-up to queued, because
// that would let the queue start a turn.
func (t guardedTurns) ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange) (*protocol.FollowUp, error) {
	if change.State == protocol.FollowUpQueued {
		if err := t.checkSpace(); err != nil {
			return nil, err
		}
	}
	return t.Turns.ChangeFollowUp(ctx, change)
}

// CreateFollowUp implements chat.Turns. A new follow-up can start a turn.
func (t guardedTurns) CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp) (*protocol.FollowUp, error) {
	if err := t.checkSpace(); err != nil {
		return nil, err
	}
	return t.Turns.CreateFollowUp(ctx, f)
}

// PromoteFollowUp implements chat.Turns. A promoted follow-up can start a turn.
func (t guardedTurns) PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion) (*protocol.FollowUp, error) {
	if err := t.checkSpace(); err != nil {
		return nil, err
	}
	return t.Turns.PromoteFollowUp(ctx, promotion)
}

func (t guardedTurns) checkSpace() error {
	return t.disk.refuse("New turns are refused; live turns continue.")
}

// refuse returns protocol.CodeUnavailable with a sentence while the disk is nearly full.
func (g *diskGuard) refuse(what string) error {
	if _, err := g.check(); err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "The disk of the service is nearly full. " + what, RetryAfter: diskRetry}
	}
	return nil
}

// checkSpace returns an error while the disk of a private Postgres is nearly full.
func (s *service) checkSpace() error {
	if s.disk == nil {
		return nil
	}
	return s.disk.refuse("The work continues when there is space.")
}

// guardFiles returns the function that refuses files while the disk of the local object store is nearly full; nil if the
// files are stored in a bucket.
func (s *service) guardFiles() func() error {
	if s.config.Stores.S3Bucket != "" {
		return nil
	}
	guard := newDiskGuard(s.config.FilesFolder(), "new files", s.log)
	return func() error { return guard.refuse("New files are refused.") }
}

// guardedStore refuses to store objects while the disk of the local object store is nearly full.
type guardedStore struct {
	objects.Store
	check func() error
}

// Put implements objects.Store.
func (g guardedStore) Put(ctx context.Context, key string, body io.Reader, size int64) (objects.Digest, error) {
	if err := g.check(); err != nil {
		return objects.Digest{}, err
	}
	return g.Store.Put(ctx, key, body, size)
}
