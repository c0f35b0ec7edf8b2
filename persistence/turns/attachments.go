package turns

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// attachableSQL locks the files, so that none is deleted before the message that has it is committed.
const attachableSQL = `
select file_id from files where account_id = $1 and file_id = any ($2) and deleted_at is null for share`

// CheckFiles returns a conflict with the states of the files of a message, unless the account has all of them.
func CheckFiles(ctx context.Context, tx *pg.Tx, account protocol.AccountID, ids []protocol.FileID) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, attachableSQL, account, ids)
	if err != nil {
		return fmt.Errorf("reading the files of a message: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[protocol.FileID])
	if err != nil {
		return fmt.Errorf("reading the files of a message: %w", err)
	}
	ready := map[protocol.FileID]bool{}
	for _, id := range found {
		ready[id] = true
	}
	if len(ready) == len(ids) {
		return nil
	}
	states := make([]fileUse, len(ids))
	for i, id := range ids {
		states[i] = fileUse{id, protocol.FileMissing}
		if ready[id] {
			states[i].State = protocol.FileReady
		}
	}
	return protocol.Conflict(protocol.CodeConflict, map[string][]fileUse{"files": states}, "Some files of the message do not exist any more.")
}

// fileUse is a file of a message that was refused.
type fileUse struct {
	FileID protocol.FileID  `json:"file_id"`
	State  protocol.FileUse `json:"state"`
}
