package exports

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	leaseTime     = time.Minute      // after a crash, an account can export again after this time
	leaseInterval = 10 * time.Second // between two renewals
)

// Running describes the export of an account that is running.
type Running struct {
	StartedAt time.Time `json:"started_at"`
}

const (
	// takeLeaseSQL returns no row if another export has the lease.
	takeLeaseSQL = `
	insert into exports as e (account_id, export_id, started_at, expires_at)
	values (@account, @export, now(), now() + @time)
	on conflict (account_id) do update
	set export_id = excluded.export_id, started_at = excluded.started_at, expires_at = excluded.expires_at
	where e.expires_at <= now()
	returning started_at`
	runningSQL      = `select started_at from exports where account_id = @account`
	renewLeaseSQL   = `update exports set expires_at = now() + @time where account_id = @account and export_id = @export`
	releaseLeaseSQL = `delete from exports where account_id = @account and export_id = @export`
)

// lease is the right to write the one export of an account.
type lease struct {
	db   *pg.DB
	args pgx.NamedArgs
	id   protocol.AccountID
	stop context.CancelFunc
	done sync.WaitGroup
}

// maxTakes limits how often a lease is tried, each time because the export that had it has ended meanwhile.
const maxTakes = 10

// take takes the lease of an account and keeps it until release. ctx of the result ends when the lease is lost. If
// another export of the account is running, the error is protocol.CodeConflict with a Running.
func take(ctx context.Context, db *pg.DB, account protocol.AccountID) (context.Context, *lease, error) {
	l := &lease{db: db, id: account, args: pgx.NamedArgs{"account": account, "export": uuid.New(), "time": leaseTime}}
	for range maxTakes {
		taken, err := pg.Rows(ctx, db, account, pgx.RowTo[time.Time], takeLeaseSQL, l.args)
		if err != nil {
			return nil, nil, fmt.Errorf("starting an export: %w", err)
		}
		if len(taken) > 0 {
			ctx, l.stop = context.WithCancel(ctx)
			l.done.Go(func() { l.keep(ctx) })
			return ctx, l, nil
		}
		other, err := pg.Rows(ctx, db, account, pgx.RowTo[time.Time], runningSQL, l.args)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the running export: %w", err)
		}
		if len(other) > 0 {
			return nil, nil, protocol.Conflict(protocol.CodeConflict, &Running{other[0]}, "An export of this account is already running. Wait until it has ended.")
		}
	}
	return nil, nil, &protocol.Error{Code: protocol.CodeUnavailable, RetryAfter: pg.RetrySeconds}
}

// keep renews the lease until ctx ends. While the database is unavailable, it tries again: the export cannot go on
// either.
func (l *lease) keep(ctx context.Context) {
	ticker := time.NewTicker(leaseInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if renewed, err := l.db.Exec(ctx, l.id, renewLeaseSQL, l.args); err == nil && renewed == 0 {
			l.stop()
		}
	}
}

// release ends the lease. It runs after the client has disconnected, too.
func (l *lease) release(ctx context.Context) {
	l.stop()
	l.done.Wait()
	if _, err := l.db.Exec(context.WithoutCancel(ctx), l.id, releaseLeaseSQL, l.args); err != nil {
		l.db.Log.Warn("the lease of an export was not released; it expires within a minute", zap.Error(err))
	}
}
