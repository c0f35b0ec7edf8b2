package conversations

// deleteTemporaryFilesSQL deletes the files that were uploaded for a temporary conversation, before its tombstone is left.
// A file stays if the account keeps it in the library (its purpose), if it belongs to a project, or if another conversation
// has it in a message, in its queue or in its draft. The sweep of package files deletes the bytes, and frees the quota, once
// the messages are erased.
const deleteTemporaryFilesSQL = `
	update files f set deleted_at = now()
	where f.account_id = @account and f.deleted_at is null and f.purpose = 'attachment'
	  and f.file_id in (
		select file_id from files where account_id = @account and uploaded_for = @conversation and deleted_at is null
		union
		select u.file_id from messages m join message_files u on u.account_id = m.account_id and u.message_id = m.message_id
		where m.account_id = @account and m.conversation_id = @conversation and m.attachments <> '{}'
		union
		select unnest(draft_attachments) from conversations where account_id = @account and conversation_id = @conversation
		union
		select unnest(attachments) from follow_ups
		where account_id = @account and conversation_id = @conversation and state in ('queued', 'held') and attachments <> '{}')
	  and (f.uploaded_for is null or exists (
		select from conversations t where t.account_id = @account and t.conversation_id = f.uploaded_for and t.temporary))
	  and not exists (select from project_files p where p.account_id = @account and p.file_id = f.file_id)
	  and not exists (
		select from message_files u
		join messages m on m.account_id = u.account_id and m.message_id = u.message_id
		join conversations o on o.account_id = m.account_id and o.conversation_id = m.conversation_id
		where u.account_id = @account and u.file_id = f.file_id and o.conversation_id <> @conversation and o.deleted_at is null)
	  and not exists (
		select from follow_ups q
		where q.account_id = @account and q.conversation_id <> @conversation and q.state in ('queued', 'held') and q.attachments <> '{}'
		  and f.file_id = any (q.attachments))
	  and not exists (
		select from conversations d
		where d.account_id = @account and d.conversation_id <> @conversation and d.draft_attachments <> '{}' and f.file_id = any (d.draft_attachments))`
