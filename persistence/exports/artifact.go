package exports

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	artifactColumns = `
	select a.artifact_id, a.conversation_id, a.kind, a.language, v.version, v.title, v.created_by, v.created_at, v.content`
	artifactsSQL = artifactColumns + `
	from artifact_versions v
	join artifacts a on a.account_id = v.account_id and a.artifact_id = v.artifact_id
	join conversations c on c.account_id = a.account_id and c.conversation_id = a.conversation_id
	where v.account_id = @account and (v.artifact_id, v.version) > (@artifact, @version) and ` + conversations.Visible + ` and not c.temporary
	order by v.account_id, v.artifact_id, v.version
	limit @limit`
	artifactsOfConversationSQL = artifactColumns + `
	from artifacts a
	join artifact_versions v on v.account_id = a.account_id and v.artifact_id = a.artifact_id
	join conversations c on c.account_id = a.account_id and c.conversation_id = a.conversation_id
	where a.account_id = @account and a.conversation_id = @conversation and a.artifact_id >= @artifact and (a.artifact_id, v.version) > (@artifact, @version)
	  and (not @newest or v.version = a.version)
	  and ` + conversations.Visible + `
	order by a.artifact_id, v.version
	limit @limit`
)

// artifacts returns the next versions of artifacts after a position, which it moves: those of a conversation, or of the account if
// it is nil. newest leaves out the earlier versions of those of a conversation.
func (s *Store) artifacts(ctx context.Context, account protocol.AccountID, conversation *protocol.ConversationID, newest bool, after *protocol.ExportedArtifact) ([]protocol.ExportedArtifact, error) {
	sql := artifactsSQL
	if conversation != nil {
		sql = artifactsOfConversationSQL
	}
	found, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.ExportedArtifact], sql, pgx.NamedArgs{
		"account": account, "conversation": conversation, "artifact": after.ArtifactID, "version": after.Version, "newest": newest, "limit": artifactsPage,
	})
	if err != nil {
		return nil, fmt.Errorf("reading artifacts: %w", err)
	}
	if len(found) > 0 {
		*after = found[len(found)-1]
	}
	return found, nil
}

// artifacts calls each for every version of the artifacts of the conversation, or for the newest one of each.
func (s *source) artifacts(ctx context.Context, newest bool, each func(*protocol.ExportedArtifact) error) error {
	var after protocol.ExportedArtifact
	for {
		found, err := s.store.artifacts(ctx, s.account, &s.page.ConversationID, newest, &after)
		if err != nil {
			return err
		}
		for i := range found {
			if err := each(&found[i]); err != nil {
				return err
			}
		}
		if len(found) < artifactsPage {
			return nil
		}
	}
}
