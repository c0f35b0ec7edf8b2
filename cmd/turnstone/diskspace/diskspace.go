// Package diskspace refuses work that needs space while a disk is nearly full. The command serve puts it before the stores, and
// the command doctor reports its limits. It never deletes anything.
package diskspace

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

// Space is the free and the total space of a disk, in bytes.
type Space struct{ Free, All uint64 }

// Read returns the space of the disk of a folder.
func Read(folder string) (Space, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return Space{}, fmt.Errorf("reading the free space at %s: %w", folder, err)
	}
	return Space{Free: disk.Bavail * uint64(disk.Bsize), All: disk.Blocks * uint64(disk.Bsize)}, nil
}

// Check returns an error with the figures if too little space is free.
func (s Space) Check() error {
	if s.Free < leastSpace || s.Free < ampleSpace && float64(s.Free) < leastShare*float64(s.All) {
		return fmt.Errorf("%d of %d MiB are free", s.Free>>20, s.All>>20)
	}
	return nil
}

// Guard watches the disk of a private Postgres, or of the local object store. While too little space is free, it
// refuses new turns, or new files. Live turns continue, follow-ups that were already accepted into a queue still start,
// and reads are served. A disk whose free space cannot be read counts as full.
//
// Concurrency: its methods may be called from any goroutine.
type Guard struct {
	// Set by New.
	read func() (Space, error)
	now  func() time.Time
	what string // that is refused, for the log
	log  *zap.Logger

	mu   sync.Mutex
	at   time.Time // guarded by mu: time of the last reading
	last Space     // guarded by mu
	err  error     // guarded by mu: why what is refused; nil: it is not
}

// New returns the guard of the disk of a folder. what names what is refused, for the log.
func New(folder, what string, log *zap.Logger) *Guard {
	return &Guard{read: func() (Space, error) { return Read(folder) }, now: time.Now, what: what, log: log.Named("disk")}
}

// Check returns the last reading, or a new one if that is older than diskReadingAge. It logs each change between full
// and not full once.
func (g *Guard) Check() (Space, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if !g.at.IsZero() && now.Sub(g.at) < diskReadingAge {
		return g.last, g.err
	}
	previous := g.err
	g.at = now
	if g.last, g.err = g.read(); g.err == nil {
		g.err = g.last.Check()
	}
	switch {
	case previous == nil && g.err != nil:
		g.log.Error("the disk is nearly full: "+g.what+" are refused", zap.Error(g.err))
	case previous != nil && g.err == nil:
		g.log.Info("the disk has free space again: "+g.what+" are accepted", zap.Uint64("free_mib", g.last.Free>>20))
	}
	return g.last, g.err
}

// Probe is the disk check of /ready.
func (g *Guard) Probe(context.Context) error {
	_, err := g.Check()
	return err
}

// Turns refuses to start turns while the disk is nearly full.
type Turns struct {
	chat.Turns
	Disk *Guard
}

// StartTurn implements chat.Turns. It returns protocol.CodeUnavailable while the disk is nearly full. A repeated start
// whose turn exists is resolved before this is called.
func (t Turns) StartTurn(ctx context.Context, start *turnlog.Start) (*turnlog.StartResult, error) {
	if err := t.checkSpace(); err != nil {
		return nil, err
	}
	return t.Turns.StartTurn(ctx, start)
}

// ChangeFollowUp implements chat.Turns. While the disk is nearly full it refuses to set a follow-up to queued, because
// that would let the queue start a turn.
func (t Turns) ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange) (*protocol.FollowUp, error) {
	if change.State == protocol.FollowUpQueued {
		if err := t.checkSpace(); err != nil {
			return nil, err
		}
	}
	return t.Turns.ChangeFollowUp(ctx, change)
}

// CreateFollowUp implements chat.Turns. A new follow-up can start a turn.
func (t Turns) CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp) (*protocol.FollowUp, error) {
	if err := t.checkSpace(); err != nil {
		return nil, err
	}
	return t.Turns.CreateFollowUp(ctx, f)
}

// PromoteFollowUp implements chat.Turns. A promoted follow-up can start a turn.
func (t Turns) PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion) (*protocol.FollowUp, error) {
	if err := t.checkSpace(); err != nil {
		return nil, err
	}
	return t.Turns.PromoteFollowUp(ctx, promotion)
}

func (t Turns) checkSpace() error {
	return t.Disk.Refuse("New turns are refused; live turns continue.")
}

// Refuse returns protocol.CodeUnavailable with a sentence while the disk is nearly full.
func (g *Guard) Refuse(what string) error {
	if _, err := g.Check(); err != nil {
		return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "The disk of the service is nearly full. " + what, RetryAfter: diskRetry}
	}
	return nil
}

// Store refuses to store objects while the disk of the local object store is nearly full.
type Store struct {
	objects.Store
	Check func() error // returns why nothing is stored; nil: it is
}

// Put implements objects.Store.
func (s Store) Put(ctx context.Context, key string, body io.Reader, size int64) (objects.Digest, error) {
	if err := s.Check(); err != nil {
		return objects.Digest{}, err
	}
	return s.Store.Put(ctx, key, body, size)
}
