package conversations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/open"
	"turnstone/persistence/pg"
)

// endingFiles selects the files x that a temporary conversation has or that belong to it, and that only conversations may
// keep: not those that the account keeps in the library (its purpose), those of a project, and those that belong to another
// conversation, which decides about them when it ends.
const endingFiles = `
	x.account_id = @account and x.deleted_at is null and x.purpose = 'attachment'
	  and x.file_id in (
		select file_id from files where account_id = @account and uploaded_for = @conversation and deleted_at is null
		union
		select u.file_id from messages m join message_files u on u.account_id = m.account_id and u.message_id = m.message_id
		where m.account_id = @account and m.conversation_id = @conversation and m.attachments <> '{}'
		union
		select unnest(draft_attachments) from conversations where account_id = @account and conversation_id = @conversation
		union
		select unnest(attachments) from follow_ups
		where account_id = @account and conversation_id = @conversation and ` + open.FollowUps + ` and attachments <> '{}')
	  and (x.uploaded_for is null or x.uploaded_for = @conversation or exists (
		select from conversations t where t.account_id = @account and t.conversation_id = x.uploaded_for and t.temporary and t.deleted_at is not null))
	  and not exists (select from project_files p where p.account_id = @account and p.file_id = x.file_id)`

// lockEndingFilesSQL waits for the transactions that give a file to a conversation or to a project: they lock it too. The
// statement after it sees what they have committed; one statement alone would not.
const lockEndingFilesSQL = `select from files x where ` + endingFiles + ` order by x.file_id for update of x`

// otherUse selects a conversation, except @conversation, that has the file x in a message, in its queue or in its draft.
func otherUse(condition string) string {
	return `(
		select o.conversation_id from message_files u
		join messages m on m.account_id = u.account_id and m.message_id = u.message_id
		join conversations o on o.account_id = m.account_id and o.conversation_id = m.conversation_id
		where u.account_id = @account and u.file_id = x.file_id and o.conversation_id <> @conversation and o.deleted_at is null and ` + condition + `
		union all
		select o.conversation_id from follow_ups q
		join conversations o on o.account_id = q.account_id and o.conversation_id = q.conversation_id
		where q.account_id = @account and q.` + open.FollowUps + ` and q.attachments <> '{}' and x.file_id = any (q.attachments)
		  and o.conversation_id <> @conversation and o.deleted_at is null and ` + condition + `
		union all
		select o.conversation_id from conversations o
		where o.account_id = @account and o.draft_attachments <> '{}' and x.file_id = any (o.draft_attachments)
		  and o.conversation_id <> @conversation and o.deleted_at is null and ` + condition + `
		limit 1)`
}

// endFilesSQL deletes the files that end with a temporary conversation, before its tombstone is left. A file that another
// conversation has belongs to that one from now on, so that it ends with it if that one is temporary too. The sweep of
// package files deletes the bytes, and frees the quota, once the messages are erased.
var endFilesSQL = `
	update files f
	set deleted_at = case when e.heir is null then now() end, uploaded_for = coalesce(e.heir, f.uploaded_for)
	from (
		select x.file_id, coalesce(` + otherUse(`not o.temporary`) + `, ` + otherUse(`o.temporary`) + `) as heir
		from files x where ` + endingFiles + `) e
	where f.account_id = @account and f.file_id = e.file_id`

// endFiles deletes the files that end with a temporary conversation. The caller has locked the conversation.
func endFiles(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) error {
	for _, sql := range []string{lockEndingFilesSQL, endFilesSQL} {
		if _, err := tx.Exec(ctx, sql, args); err != nil {
			return fmt.Errorf("deleting the files of a temporary conversation: %w", err)
		}
	}
	return nil
}
