package main

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	ourhttp "turnstone/http"
	"turnstone/protocol"
)

const (
	// leastSpace and leastShare are when Postgres gets into danger: without room for its log it ends, and does not come
	// back before there is some. What lives by then still has to be stored.
	leastSpace = 1 << 30 // bytes
	leastShare = 0.1     // of the disk, but
	ampleSpace = 4 << 30 // bytes are enough on any: twice max_wal_size, and 2 MiB for each of 1,000 live turns

	// diskLookFor keeps a crowd of requests from asking the system more than once a second, and lets /ready name the
	// disk within its three.
	diskLookFor = time.Second
	// diskRetry is what a refused client waits, in seconds: room does not come back by itself within one.
	diskRetry = 30
)

// space is what a disk has, in bytes.
type space struct{ free, all uint64 }

func spaceAt(folder string) (space, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return space{}, fmt.Errorf("looking for room at %s: %w", folder, err)
	}
	return space{free: disk.Bavail * uint64(disk.Bsize), all: disk.Blocks * uint64(disk.Bsize)}, nil
}

// enough is nil, or says how much is left.
func (s space) enough() error {
	if s.free < leastSpace || s.free < ampleSpace && float64(s.free) < leastShare*float64(s.all) {
		return fmt.Errorf("%d MiB are free, of %d", s.free>>20, s.all>>20)
	}
	return nil
}

// diskGuard looks after the disk of a private Postgres: while too little is free no turn begins. What lives ends, what was
// queued before has been promised and begins, and reads go on. A disk that cannot be looked at counts as full. Its methods
// may be called from any goroutine.
type diskGuard struct {
	// Set by newDiskGuard.
	look func() (space, error)
	now  func() time.Time
	log  *zap.Logger

	mu   sync.Mutex
	at   time.Time // guarded by mu: of the last look
	last space     // guarded by mu
	err  error     // guarded by mu: why no turn begins
}

func newDiskGuard(folder string, log *zap.Logger) *diskGuard {
	return &diskGuard{look: func() (space, error) { return spaceAt(folder) }, now: time.Now, log: log.Named("disk")}
}

// check answers what the last look found, or looks anew when that is old; a change is logged once.
func (g *diskGuard) check() (space, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if !g.at.IsZero() && now.Sub(g.at) < diskLookFor {
		return g.last, g.err
	}
	was := g.err
	g.at = now
	if g.last, g.err = g.look(); g.err == nil {
		g.err = g.last.enough()
	}
	switch {
	case was == nil && g.err != nil:
		g.log.Error("the disk is nearly full: no turn begins", zap.Error(g.err))
	case was != nil && g.err == nil:
		g.log.Info("there is room on the disk again", zap.Uint64("free_mib", g.last.free>>20))
	}
	return g.last, g.err
}

// probe is the disk's part of /ready.
func (g *diskGuard) probe(context.Context) error {
	_, err := g.check()
	return err
}

// Describe implements prometheus.Collector.
func (g *diskGuard) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- diskFree
	descriptions <- diskFull
}

// Collect implements prometheus.Collector.
func (g *diskGuard) Collect(metrics chan<- prometheus.Metric) {
	found, err := g.check()
	full := 0.0
	if err != nil {
		full = 1
	}
	metrics <- prometheus.MustNewConstMetric(diskFree, gauge, float64(found.free))
	metrics <- prometheus.MustNewConstMetric(diskFull, gauge, full)
}

// guardedTurns lets turns begin only while there is room for them.
type guardedTurns struct {
	ourhttp.Turns
	disk *diskGuard
}

// StartTurn implements http.Turns: protocol.CodeUnavailable while the disk is nearly full. A repeat of a start finds its
// turn before it comes here.
func (t guardedTurns) StartTurn(ctx context.Context, start *protocol.TurnStart) (*protocol.TurnStartResult, error) {
	if err := t.room(); err != nil {
		return nil, err
	}
	return t.Turns.StartTurn(ctx, start)
}

// ChangeFollowUp implements http.Turns: what would let a queue go on is refused as a start is.
func (t guardedTurns) ChangeFollowUp(ctx context.Context, change *protocol.FollowUpChange) (*protocol.FollowUp, error) {
	if change.State == protocol.FollowUpQueued {
		if err := t.room(); err != nil {
			return nil, err
		}
	}
	return t.Turns.ChangeFollowUp(ctx, change)
}

func (t guardedTurns) room() error {
	if _, err := t.disk.check(); err != nil {
		return &protocol.Error{
			Code: protocol.CodeUnavailable, Detail: "The disk of the service is nearly full: no turn begins. What lives goes on.", RetryAfter: diskRetry,
		}
	}
	return nil
}
