package conversations

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// attachableSQL locks the files, so that none is deleted before the message that has it is committed.
const attachableSQL = `
select file_id, case when deleted_at is null then 'ready' else 'deleted' end as state from files f
where account_id = $1 and file_id = any ($2)
	and (deleted_at is null or exists (select from message_files u where u.account_id = f.account_id and u.file_id = f.file_id))
for share of f`

// CheckFiles returns a conflict with the states of the files of a message, unless the account has all of them.
func CheckFiles(ctx context.Context, tx *pg.Tx, account protocol.AccountID, ids []protocol.FileID) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, attachableSQL, account, ids)
	if err != nil {
		return fmt.Errorf("reading the files of a message: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[fileUse])
	if err != nil {
		return fmt.Errorf("reading the files of a message: %w", err)
	}
	states, ready := make([]fileUse, len(ids)), 0
	for i, id := range ids {
		states[i] = fileUse{id, protocol.FileMissing}
		if at := slices.IndexFunc(found, func(u fileUse) bool { return u.FileID == id }); at >= 0 {
			states[i] = found[at]
		}
		if states[i].State == protocol.FileReady {
			ready++
		}
	}
	if ready == len(ids) {
		return nil
	}
	return protocol.Conflict(protocol.CodeConflict, map[string][]fileUse{"files": states}, "Some files of the message do not exist any more.")
}

// claimFilesSQL gives the attachments that belong to no conversation yet to the first one that names them. It comes before
// the check, which locks the files for others too: two callers that would both raise their lock would wait for each other.
const claimFilesSQL = `
update files set uploaded_for = $2
where account_id = $1 and file_id = any ($3) and purpose = 'attachment' and uploaded_for is null`

// AttachFiles is CheckFiles for the draft or a follow-up of a conversation, which the caller has locked. From then on, a
// file ends with the conversation if that is temporary, even if neither names it any more. For messages, a trigger does so.
func AttachFiles(ctx context.Context, tx *pg.Tx, account protocol.AccountID, conversation protocol.ConversationID, ids []protocol.FileID) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, claimFilesSQL, account, conversation, ids); err != nil {
		return fmt.Errorf("attaching files: %w", err)
	}
	return CheckFiles(ctx, tx, account, ids)
}

// fileUse is a file of a message that was refused.
type fileUse struct {
	FileID protocol.FileID  `json:"file_id"`
	State  protocol.FileUse `json:"state"`
}
