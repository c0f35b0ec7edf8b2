package turns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"go.uber.org/zap"
)

const (
	partitionInterval = time.Hour
	partitionsAhead   = 3 // days
	partitionTimeout  = 30 * time.Minute
	partitionAttempts = 10 // of one job; the next job follows within partitionInterval

	// A statement that waits for the lock of turn_events delays every append behind it. So its wait is short, and the
	// next attempt of the job tries again.
	partitionLockTimeout      = "100ms"
	partitionStatementTimeout = "10min"
	defaultPartitionRows      = 10_000 // deleted in one transaction
)

// partitionArgs is the job that creates and drops the partitions of turn_events.
type partitionArgs struct{}

// Kind returns the name of the job.
func (partitionArgs) Kind() string { return "turn_partitions" }

// InsertOpts limits the attempts, since more jobs of the same kind follow anyway.
func (partitionArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: partitionAttempts}
}

// PartitionJob returns the job that creates and drops the partitions of turn_events.
func PartitionJob(db *pg.DB) jobs.Job {
	return jobs.NewLong(partitionTimeout, func(ctx context.Context, _ partitionArgs) error { return turnPartitions(ctx, db) }).
		Every(partitionInterval, partitionArgs{})
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

// turnPartitions creates the partitions of the next days and drops those that no live turn needs, one per transaction,
// on a separate connection with its own timeouts. A partition that cannot be dropped does not block the others; the
// returned error names it, and the job is tried again.
func turnPartitions(ctx context.Context, db *pg.DB) error {
	conn, err := partitionConn(ctx, db)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), pg.ProbeTimeout)
		defer cancel()
		_ = conn.Close(closing) // every statement was its own transaction
	}()
	var made int
	var failed []error
	if err := conn.QueryRow(ctx, ensurePartitionsSQL, partitionsAhead).Scan(&made); err != nil {
		failed = append(failed, fmt.Errorf("creating partitions: %w", pg.Classify(err)))
	}
	dropped, err := dropPartitions(ctx, db, conn)
	failed = append(failed, err, clearDefaultPartition(ctx, conn))
	if made+dropped > 0 {
		db.Log.Info("partitions of turn_events", zap.Int("created", made), zap.Int("dropped", dropped))
	}
	return errors.Join(failed...)
}

// partitionConn connects under the engine role.
func partitionConn(ctx context.Context, db *pg.DB) (*pgx.Conn, error) {
	config := db.Engine.Config().ConnConfig
	config.RuntimeParams["lock_timeout"] = partitionLockTimeout
	config.RuntimeParams["statement_timeout"] = partitionStatementTimeout
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, pg.Unavailable(err)
	}
	return conn, nil
}

func dropPartitions(ctx context.Context, db *pg.DB, conn *pgx.Conn) (dropped int, err error) {
	rows, err := conn.Query(ctx, oldPartitionsSQL)
	if err != nil {
		return 0, fmt.Errorf("listing partitions: %w", pg.Classify(err))
	}
	parts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("listing partitions: %w", pg.Classify(err))
	}
	var failed []error
	for _, part := range parts {
		var gone bool
		switch err := conn.QueryRow(ctx, dropPartitionSQL, part).Scan(&gone); {
		case err != nil:
			failed = append(failed, fmt.Errorf("dropping %s: %w", part, pg.Classify(err)))
		case gone:
			dropped++
		default:
			db.Log.Warn("an old partition is kept because a live turn needs it", zap.String("partition", part))
		}
	}
	return dropped, errors.Join(failed...)
}

// clearDefaultPartition deletes old rows of ended turns from the default partition, which is empty unless the partition
// of a day was missing.
func clearDefaultPartition(ctx context.Context, conn *pgx.Conn) error {
	for deleted := defaultPartitionRows; deleted == defaultPartitionRows; {
		if err := conn.QueryRow(ctx, clearDefaultSQL, defaultPartitionRows).Scan(&deleted); err != nil {
			return fmt.Errorf("clearing the default partition: %w", pg.Classify(err))
		}
	}
	return nil
}
