package persistence

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A connection does not outlive a crash of the server, so it belongs to one life of it. Every connection of requests
// learns at its beginning which one that is, because of what a lost answer to COMMIT needs: pg_xact_status. When the server
// crashes before anything of a transaction has reached its log, it hands the same identifier out again, and the status that
// it then tells is another transaction's. So "committed" counts only within one life.
const (
	beginLifeSQL = `insert into server_life (life) select gen_random_uuid() where not exists (select from server_life)`
	readLifeSQL  = `select life from server_life limit 1`
	lifeKey      = "turnstone.life" // in the custom data of a connection
)

// learnLife is a pool's AfterConnect.
func learnLife(ctx context.Context, conn *pgx.Conn) error {
	var life uuid.UUID
	batch := &pgx.Batch{}
	batch.Queue(beginLifeSQL)
	batch.Queue(readLifeSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&life) })
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("asking for the life of the server: %w", err)
	}
	conn.PgConn().CustomData()[lifeKey] = life
	return nil
}

// lifeOf is zero, which is no life at all, for a connection that did not learn it.
func lifeOf(conn *pgx.Conn) uuid.UUID {
	life, _ := conn.PgConn().CustomData()[lifeKey].(uuid.UUID)
	return life
}
