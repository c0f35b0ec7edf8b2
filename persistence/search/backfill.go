package search

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const backfillRows = 2000 // objects that one transaction adds

const (
	backfillPositionSQL = `select kind from search_backfill order by kind limit 1`

	// The statements read in the order of the primary key, from the position on.
	backfillMessagesSQL = `
	with next as materialized (
		select m.account_id, m.message_id as id, m.conversation_id, m.status <> 'streaming' as whole
		from search_backfill b
		cross join lateral (
			select account_id, message_id, conversation_id, status from messages
			where (account_id, message_id) > (b.after_account, b.after_id) order by account_id, message_id limit @limit) m
		where b.kind = 'message'
	), added as (
		insert into search_pending (account_id, kind, id, conversation_id)
		select account_id, 'message', id, conversation_id from next where whole
	)` + backfillMoveSQL
	backfillTitlesSQL = `
	with next as materialized (
		select c.account_id, c.conversation_id as id, c.conversation_id, not c.temporary and c.deleted_at is null as whole
		from search_backfill b
		cross join lateral (
			select account_id, conversation_id, temporary, deleted_at from conversations
			where (account_id, conversation_id) > (b.after_account, b.after_id) order by account_id, conversation_id limit @limit) c
		where b.kind = 'conversation'
	), added as (
		insert into search_pending (account_id, kind, id, conversation_id)
		select account_id, 'conversation', id, conversation_id from next where whole
	)` + backfillMoveSQL
	backfillFilesSQL = `
	with next as materialized (
		select f.account_id, f.file_id as id
		from search_backfill b
		cross join lateral (
			select account_id, file_id from files
			where (account_id, file_id) > (b.after_account, b.after_id) order by account_id, file_id limit @limit) f
		where b.kind = 'file'
	), added as (
		insert into search_pending (account_id, kind, id, file_id)
		select account_id, 'file', search_section(id, 0), id from next
		union all
		select c.account_id, 'file', search_section(c.file_id, search_section_at(c.start_at)), c.file_id
		from next n join file_text_chunks c on c.account_id = n.account_id and c.file_id = n.id
		where c.start_at > 0
	)` + backfillMoveSQL
	backfillArtifactsSQL = `
	with next as materialized (
		select a.account_id, a.artifact_id as id, a.conversation_id
		from search_backfill b
		cross join lateral (
			select account_id, artifact_id, conversation_id from artifacts
			where (account_id, artifact_id) > (b.after_account, b.after_id) order by account_id, artifact_id limit @limit) a
		where b.kind = 'artifact'
	), added as (
		insert into search_pending (account_id, kind, id, conversation_id)
		select account_id, 'artifact', id, conversation_id from next
	)` + backfillMoveSQL
	backfillTasksSQL = `
	with next as materialized (
		select t.account_id, t.task_id as id, t.conversation_id
		from search_backfill b
		cross join lateral (
			select account_id, task_id, conversation_id from research_tasks
			where (account_id, task_id) > (b.after_account, b.after_id) order by account_id, task_id limit @limit) t
		where b.kind = 'task'
	), added as (
		insert into search_pending (account_id, kind, id, conversation_id)
		select account_id, 'task', id, conversation_id from next
	)` + backfillMoveSQL
	backfillMoveSQL = `
	update search_backfill b set after_account = last.account_id, after_id = last.id
	from (select account_id, id from next order by account_id desc, id desc limit 1) last
	where b.kind = @kind`
	backfillDoneSQL = `delete from search_backfill where kind = $1`
)

// backfill adds texts from before the index to the pending ones, a bounded number at a time. It runs only when nothing
// else is pending, so texts that change now are indexed first.
func (i *indexer) backfill(ctx context.Context) (done bool, err error) {
	rows, err := i.conn.Query(ctx, backfillPositionSQL)
	if err != nil {
		return false, fmt.Errorf("reading the progress of the index: %w", pg.Classify(err))
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowTo[protocol.SearchKind])
	if err != nil || len(kinds) == 0 {
		return true, pg.Classify(err)
	}
	sql := map[protocol.SearchKind]string{
		protocol.SearchConversation: backfillTitlesSQL, protocol.SearchMessage: backfillMessagesSQL, protocol.SearchFile: backfillFilesSQL,
		protocol.SearchArtifact: backfillArtifactsSQL, protocol.SearchTask: backfillTasksSQL,
	}[kinds[0]]
	moved, err := i.conn.Exec(ctx, sql, pgx.NamedArgs{"kind": kinds[0], "limit": backfillRows})
	if err == nil && moved.RowsAffected() == 0 {
		_, err = i.conn.Exec(ctx, backfillDoneSQL, kinds[0])
	}
	if err != nil {
		return false, fmt.Errorf("adding older texts to the index: %w", pg.Classify(err))
	}
	return false, nil
}
