package persistence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"go.uber.org/zap"
)

const (
	partitionInterval = time.Hour
	partitionsAhead   = 3 // days
	partitionTimeout  = 30 * time.Minute
	partitionAttempts = 10 // of one job; the next one comes within partitionInterval

	// A statement that waits for the lock of turn_events delays every append behind it. So it waits for so long at most
	// and is tried again by the job's next attempt.
	partitionLockTimeout      = "100ms"
	partitionStatementTimeout = "10min"
	defaultPartitionRows      = 10_000 // deleted in one transaction
)

// partitionArgs asks for the partitions of turn_events.
type partitionArgs struct{}

// Kind names the job.
func (partitionArgs) Kind() string { return "turn_partitions" }

// InsertOpts bound the attempts, since jobs of the same kind follow anyway.
func (partitionArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: partitionAttempts}
}

type partitionWorker struct {
	river.WorkerDefaults[partitionArgs]
	db *DB
}

// Timeout is longer than that of other jobs.
func (*partitionWorker) Timeout(*river.Job[partitionArgs]) time.Duration { return partitionTimeout }

// Work creates and drops partitions.
func (w *partitionWorker) Work(ctx context.Context, _ *river.Job[partitionArgs]) error {
	return w.db.turnPartitions(ctx)
}

const (
	ensurePartitionsSQL = `select ensure_turn_partitions($1)`
	oldPartitionsSQL    = `
select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = 'public.turn_events'::regclass and c.relname ~ '^turn_events_\d{8}$'
  and to_date(right(c.relname, 8), 'YYYYMMDD') < (now() at time zone 'UTC')::date - 2
order by c.relname`
	dropPartitionSQL = `select drop_turn_partition($1)`
	clearDefaultSQL  = `select clear_turn_events_default($1)`
)

// turnPartitions creates the partitions of the next days and drops those that no live turn needs, one per transaction, on
// a connection of its own with its own timeouts. A partition that cannot be dropped now does not keep the others; the
// returned error names it, and the job is tried again.
func (db *DB) turnPartitions(ctx context.Context) error {
	conn, err := db.partitionConn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer cancel()
		_ = conn.Close(closing) // every statement was its own transaction
	}()
	var made int
	var failed []error
	if err := conn.QueryRow(ctx, ensurePartitionsSQL, partitionsAhead).Scan(&made); err != nil {
		failed = append(failed, fmt.Errorf("creating partitions: %w", classify(err)))
	}
	dropped, err := db.dropPartitions(ctx, conn)
	failed = append(failed, err, clearDefaultPartition(ctx, conn))
	if made+dropped > 0 {
		db.log.Info("partitions of turn_events", zap.Int("created", made), zap.Int("dropped", dropped))
	}
	return errors.Join(failed...)
}

// partitionConn connects as the engine.
func (db *DB) partitionConn(ctx context.Context) (*pgx.Conn, error) {
	config := db.engine.Config().ConnConfig
	config.RuntimeParams["lock_timeout"] = partitionLockTimeout
	config.RuntimeParams["statement_timeout"] = partitionStatementTimeout
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, unavailable(err)
	}
	return conn, nil
}

func (db *DB) dropPartitions(ctx context.Context, conn *pgx.Conn) (dropped int, err error) {
	rows, err := conn.Query(ctx, oldPartitionsSQL)
	if err != nil {
		return 0, fmt.Errorf("listing partitions: %w", classify(err))
	}
	parts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("listing partitions: %w", classify(err))
	}
	var failed []error
	for _, part := range parts {
		var gone bool
		switch err := conn.QueryRow(ctx, dropPartitionSQL, part).Scan(&gone); {
		case err != nil:
			failed = append(failed, fmt.Errorf("dropping %s: %w", part, classify(err)))
		case gone:
			dropped++
		default:
			db.log.Warn("a live turn keeps an old partition", zap.String("partition", part))
		}
	}
	return dropped, errors.Join(failed...)
}

func clearDefaultPartition(ctx context.Context, conn *pgx.Conn) error {
	for deleted := defaultPartitionRows; deleted == defaultPartitionRows; {
		if err := conn.QueryRow(ctx, clearDefaultSQL, defaultPartitionRows).Scan(&deleted); err != nil {
			return fmt.Errorf("clearing the default partition: %w", classify(err))
		}
	}
	return nil
}
