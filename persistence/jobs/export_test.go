package jobs

import (
	"context"

	"turnstone/persistence/pg"

	"github.com/jackc/pgx/v5/pgxpool"
)

// JobPool creates the connection pool of the job queue.
func JobPool(ctx context.Context, db *pg.DB) (*pgxpool.Pool, error) { return jobPool(ctx, db) }
