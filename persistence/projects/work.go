package projects

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Work is an entry for the work history of a project. It is stored in the transaction of the change that it describes.
type Work struct {
	Kind           protocol.WorkKind
	SessionID      *protocol.SessionID // of the request; nil: the service did it
	ConversationID *protocol.ConversationID
	TurnID         *protocol.TurnID
	OtherProjectID *protocol.ProjectID
	FileID         *protocol.FileID
	TaskID         *protocol.TaskID
	Version        *int64
}

const insertWorkSQL = `
	insert into project_work (account_id, work_id, project_id, kind, session_id, conversation_id, turn_id, other_project_id, file_id, task_id, version)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// Queue adds the statement that stores the entry.
func (w Work) Queue(batch *pgx.Batch, account protocol.AccountID, project protocol.ProjectID) {
	batch.Queue(insertWorkSQL, account, protocol.NewWorkID(), project, string(w.Kind), w.SessionID, w.ConversationID, w.TurnID, w.OtherProjectID, w.FileID, w.TaskID, w.Version)
}

const (
	projectExistsSQL = `select 1 from projects where account_id = @account and project_id = @project`
	listWorkSQL      = `
	select work_id, kind, case when session_id is null then 'service' else 'user' end as by, session_id, conversation_id, turn_id,
		other_project_id, file_id, task_id, version, at
	from project_work
	where account_id = @account and project_id = @project and work_id < @after
	order by work_id desc limit @limit`
)

// ListWork returns a page of the work history of a project, newest first. It starts after an entry; nil starts at the
// beginning. next is nil at the end.
func (s *Store) ListWork(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, after *protocol.WorkID, limit int) (
	page []protocol.Work, next *protocol.WorkID, err error,
) {
	from := protocol.WorkID(pg.HighestID)
	if after != nil {
		from = *after
	}
	args := pgx.NamedArgs{"account": account, "project": project, "after": from, "limit": limit + 1}
	batch := &pgx.Batch{}
	batch.Queue(projectExistsSQL, args).QueryRow(func(row pgx.Row) error {
		var one int
		return row.Scan(&one)
	})
	batch.Queue(listWorkSQL, args).Query(func(rows pgx.Rows) (err error) {
		page, err = pgx.CollectRows(rows, pgx.RowToStructByName[protocol.Work])
		return err
	})
	if err := s.db.Send(ctx, account, batch); err != nil {
		return nil, nil, fmt.Errorf("reading a work history: %w", err)
	}
	return pg.NextPage(page, limit, func(last *protocol.Work) protocol.WorkID { return last.WorkID })
}
