package persistence

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// AppendAlone stores one append with a statement of its own: what the benchmark holds the journal against.
func (db *DB) AppendAlone(ctx context.Context, a *protocol.TurnAppend) error {
	conn, err := acquire(ctx, db.engine)
	if err != nil {
		return err
	}
	defer conn.Release()
	stored, err := appendBatch(ctx, conn.Conn(), []*journalEntry{{TurnAppend: a}})
	if err == nil && !stored[0] {
		return protocol.ErrFenced
	}
	return err
}

// ReadEventsSQL reads what follows a sequence in the log of a live turn.
const ReadEventsSQL = readEventsSQL

// Quiet is what the pools ask before they hand a connection out.
func Quiet(ctx context.Context, conn *pgx.Conn) (bool, error) { return quiet(ctx, conn) }

// MigrateTo brings the schema to an older version.
func MigrateTo(ctx context.Context, ownerURL string, version int32) error {
	config, err := ownerConfig(ownerURL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	migrator, err := newMigrator(ctx, conn)
	if err != nil {
		return err
	}
	return migrator.MigrateTo(ctx, version)
}

// Started is what became of one start.
type Started struct {
	Result *protocol.TurnStartResult
	Err    error
	Alone  bool // it could not begin with the others
}

// StartTogether begins turns that came at the same time.
func (t *Turns) StartTogether(ctx context.Context, starts ...*protocol.TurnStart) []Started {
	group := make([]*sharedStart, len(starts))
	for i, start := range starts {
		group[i] = &sharedStart{TurnStart: start, ctx: ctx, taken: make(chan struct{}), done: make(chan struct{})}
	}
	t.startWaiting(group)
	started := make([]Started, len(starts))
	for i, s := range group {
		<-s.done
		started[i] = Started{s.result, s.err, s.alone}
		if s.alone {
			started[i].Result, started[i].Err = t.startAlone(ctx, s.TurnStart)
		}
	}
	return started
}

// Gather collects numbers, for the tests of how groups are made.
type Gather struct{ g gather[int] }

// NewGather makes one; see gather.
func NewGather(atOnce, most int, patience time.Duration, work func(group []int)) *Gather {
	return &Gather{gather[int]{atOnce: atOnce, most: most, patience: patience, work: work}}
}

// Add hands a number in.
func (g *Gather) Add(item int) { g.g.add(item) }

// DialWith reaches Redis another way.
func (l *Limiter) DialWith(dial func(context.Context, string, string) (net.Conn, error)) {
	l.redis.Options().Dialer = dial
}
