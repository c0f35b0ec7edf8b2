package files

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// recentUses limits the uses of files, newest first, among which the recently used files are found.
const recentUses = 200

const (
	matches = `f.deleted_at is null and (@query = '' or position(lower(@query) in lower(f.filename)) > 0)`
	// pickSQL takes at most @limit files of each group, so that only these are sorted. A file counts for its first group.
	pickSQL = `
	with recent as (
		select file_id, max(n) as n from (
			select file_id, row_number() over (order by message_id) as n from (
				select file_id, message_id from message_files where account_id = @account order by message_id desc limit @uses) u) r
		group by file_id
	), candidates as (
		(select recent.file_id, 3 as rank, recent.n from recent
		cross join lateral (select * from files f where f.account_id = @account and f.file_id = recent.file_id offset 0) f
		where ` + matches + ` order by recent.n desc limit @limit)
		union all
		(select m.file_id, 2, 0 from project_files m
		cross join lateral (select * from files f where f.account_id = m.account_id and f.file_id = m.file_id offset 0) f
		where m.account_id = @account and ` + matches + ` and m.project_id = (
			select p.project_id from conversations c join projects p on p.account_id = c.account_id and p.project_id = c.project_id and p.deleted_at is null
			where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible + `)
		order by m.file_id desc limit @limit)
		union all
		(select f.file_id, 1, 0 from files f where f.account_id = @account and ` + matches + ` order by f.file_id desc limit @limit)
	), picked as (
		select file_id, max(rank) as rank, max(n) as n from candidates group by file_id order by 2 desc, 3 desc, 1 desc limit @limit
	)
	select found.* from picked
	cross join lateral (select ` + fileColumns + fromFiles + `where f.account_id = @account and f.file_id = picked.file_id offset 0) found
	order by picked.rank desc, picked.n desc, picked.file_id desc`
)

// PickFiles returns a few files whose names contain a text, for a message: first those that messages got recently, then those
// of the project of a conversation, which need not exist, then the newest of the library.
func (s *Store) PickFiles(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, query string, limit int) ([]protocol.File, error) {
	args := pgx.NamedArgs{"account": account, "conversation": conversation, "query": query, "uses": recentUses, "limit": limit}
	picked, err := pg.Rows(ctx, s.db, account, scanFile, pickSQL, args)
	if err != nil {
		return nil, fmt.Errorf("listing files for a message: %w", err)
	}
	return picked, nil
}
