package persistence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const turnAccountSQL = `select account_id from turns where turn_id = $1`

// AccountOfTurn tells operators whose turn it is, who are the only ones to ask without an account. It may read the whole
// table.
func (t *Turns) AccountOfTurn(ctx context.Context, turn protocol.TurnID) (protocol.AccountID, error) {
	var found []protocol.AccountID
	batch := &pgx.Batch{}
	batch.Queue(turnAccountSQL, turn).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowTo[protocol.AccountID])
		return err
	})
	if err := t.db.send(ctx, t.db.engine, Nobody, batch); err != nil {
		return protocol.AccountID{}, fmt.Errorf("finding the account of a turn: %w", classify(err))
	}
	if len(found) != 1 { // none; identifiers of turns are made by the service, so there are no two
		return protocol.AccountID{}, protocol.Errorf(protocol.CodeNotFound, "there is no turn %s", turn)
	}
	return found[0], nil
}
