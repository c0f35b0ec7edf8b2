package search

var (
	projectFilesSQL = windowOf("r.file_id", `
				select f.file_id as id from project_files m join files f on f.account_id = m.account_id and f.file_id = m.file_id
				where m.account_id = @account and m.project_id = @project and f.deleted_at is null`)
	conversationFilesSQL = windowOf("r.file_id", filesOfConversation)
)

// filesOfConversation selects the files of the library that messages of a conversation have.
const filesOfConversation = `
				select distinct f.file_id, f.file_id as id from messages m
				join message_files u on u.account_id = m.account_id and u.message_id = m.message_id
				join files f on f.account_id = u.account_id and f.file_id = u.file_id
				where m.account_id = @account and m.conversation_id = @conversation and m.attachments <> '{}' and f.deleted_at is null`
