package shares

import (
	"context"

	"turnstone/persistence/conversations"
)

// readableSQL is the condition under which a share s can be read and is listed. It is checked by every statement that reads
// shares, so a deletion has its effect at once.
const readableSQL = `s.expires_at > now() and exists (
		select from conversations c where c.account_id = s.account_id and c.conversation_id = s.conversation_id and ` + conversations.Visible + `)`

var expirePagesSQL, expireFilesSQL, expireArtifactsSQL = expireRows("share_pages", "page"), expireRows("share_files", "n"), expireRows("share_artifacts", "n")

func expireRows(table, column string) string {
	return conversations.DeleteShareRows(table, column, "expires_at < now()", "$1")
}

// expireSharesSQL deletes a share only after its pages, files and artifacts, so that no transaction grows with the size of a share.
const expireSharesSQL = `
	delete from shares s using (
		select s.account_id, s.share_id from shares s
		where s.expires_at < now()
		  and not exists (select from share_pages p where p.account_id = s.account_id and p.share_id = s.share_id)
		  and not exists (select from share_files w where w.account_id = s.account_id and w.share_id = s.share_id)
		  and not exists (select from share_artifacts a where a.account_id = s.account_id and a.share_id = s.share_id)
		order by s.expires_at limit $1) x
	where s.account_id = x.account_id and s.share_id = x.share_id`

// Expire erases the shares that have expired.
func (s *Store) Expire(ctx context.Context) error {
	return s.db.DeleteExpired(ctx, expirePagesSQL, expireFilesSQL, expireArtifactsSQL, expireSharesSQL)
}
