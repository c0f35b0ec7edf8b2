package exports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/exports/archive"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// page is the number of rows that one statement reads.
const page = archive.Page

// Temporary conversations are never exported. The order by identifier does not change while the account is in use.
const conversationIDsSQL = `
	select c.conversation_id from conversations c
	where c.account_id = @account and c.conversation_id > @after and ` + conversations.Visible + ` and not c.temporary
	order by c.conversation_id
	limit @limit`

func (s *Store) allConversations(ctx context.Context, account protocol.AccountID, to *archive.Archive) error {
	var after protocol.ConversationID
	for {
		ids, err := pg.Rows(ctx, s.db, account, pgx.RowTo[protocol.ConversationID], conversationIDsSQL,
			pgx.NamedArgs{"account": account, "after": after, "limit": page})
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := s.conversation(ctx, account, id, to); err != nil {
				return err
			}
			after = id
		}
		if len(ids) < page {
			return nil
		}
	}
}

// conversation writes the two files of a conversation. A conversation that was deleted since it was listed, or that a
// deleted project hides, has none.
func (s *Store) conversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, to *archive.Archive) error {
	source, err := s.open(ctx, account, id)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := to.Create("conversations/" + id.String() + ".json")
	if err != nil {
		return err
	}
	if err := source.writeJSON(ctx, file); err != nil {
		return err
	}
	if file, err = to.Create("conversations/" + id.String() + ".md"); err != nil {
		return err
	}
	if err := source.writeMarkdown(ctx, file); err != nil {
		return err
	}
	to.Count("conversations", 1)
	to.Count("messages", source.written.messages)
	to.Count("branches", source.written.branches)
	to.Count("follow_ups", source.written.followUps)
	to.Count("feedback", source.written.feedback)
	if source.page.Draft.Content != "" {
		to.Count("drafts", 1)
	}
	return nil
}

// artifactsPage is as small as it is because a version may have a mebibyte.
const artifactsPage = 4

func (s *Store) allArtifacts(ctx context.Context, account protocol.AccountID, to *archive.Archive) error {
	var after protocol.ExportedArtifact
	return archive.List(to, "artifacts.json", "artifact_versions", func() (found []protocol.ExportedArtifact, more bool, err error) {
		found, err = s.artifacts(ctx, account, nil, false, &after)
		return found, len(found) == artifactsPage, err
	})
}
