package imports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/imports/source"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// artifactIn returns the identifier of an artifact of an export in an imported conversation. It is derived, so that the messages
// of the conversation can name the artifact before it is imported.
func artifactIn(conversation protocol.ConversationID, inExport protocol.ArtifactID) protocol.ArtifactID {
	sum := sha256.Sum256(append(conversation[:], inExport[:]...))
	id := inExport
	copy(id[8:], sum[:8])
	id[8] = id[8]&0x3f | 0x80 // as a UUID
	return id
}

const (
	artifactConversationSQL = `
	select c.conversation_id from import_sources s
	join conversations c on c.account_id = s.account_id and c.conversation_id = s.conversation_id
	where s.account_id = @account and s.source_hash = @hash and ` + conversations.Visible + `
	limit 1`
	// An earlier import or the account itself can have written the version.
	writtenVersionSQL = `select sha256 from artifact_versions where account_id = @account and artifact_id = @artifact and version = @version`
	// Versions are in their order, so the last one is the current one.
	insertArtifactSQL = `
	insert into artifacts (account_id, artifact_id, conversation_id, kind, language, title, version, created_by, bytes, sha256, created_at, updated_at)
	values (@account, @artifact, @conversation, @kind, @language, @title, @version, @by, @bytes, @sha256, @created, @created)
	on conflict (account_id, artifact_id) do update
	set title = excluded.title, version = excluded.version, created_by = excluded.created_by, bytes = excluded.bytes, sha256 = excluded.sha256, updated_at = excluded.updated_at
	where artifacts.version < excluded.version`
	// An artifact counts with its first version; a statement does not see what it inserts itself.
	insertArtifactVersionSQL = `
	with made as (
		insert into artifact_versions (account_id, artifact_id, version, title, created_by, content, bytes, sha256, created_at)
		values (@account, @artifact, @version, @title, @by, @content, @bytes, @sha256, @created)
		on conflict do nothing
		returning version
	)
	update imports set artifacts = artifacts + 1
	where account_id = @account and import_id = @import and exists (select from made)
	  and not exists (select from artifact_versions where account_id = @account and artifact_id = @artifact)`
)

// artifact imports a version of an artifact into its conversation, unless an earlier run has handled it.
func (r *run) artifact(ctx context.Context, v *source.Artifact) error {
	return r.part(func() error {
		found, err := pg.Rows(ctx, r.db, r.account, pgx.RowTo[protocol.ConversationID], artifactConversationSQL, pgx.NamedArgs{"account": r.account, "hash": v.Key})
		if err != nil {
			return fmt.Errorf("finding the conversation of an artifact: %w", err)
		}
		if len(found) == 0 {
			r.note(protocol.ImportEntry{Reason: protocol.ImportArtifactsAbsent, Title: v.Title, Count: 1})
			return r.countPart(ctx, nil)
		}
		err = r.db.InTx(ctx, r.account, func(ctx context.Context, tx *pg.Tx) error {
			return r.quota.CheckBytes(ctx, tx, r.account, len(v.Content))
		})
		if protocol.CodeOf(err) == protocol.CodeTooLarge {
			r.note(protocol.ImportEntry{Reason: protocol.ImportArtifactsLimit, Title: v.Title, Count: 1})
			return r.countPart(ctx, nil)
		}
		if err != nil {
			return fmt.Errorf("checking the quota of an import: %w", err)
		}
		content := sha256.Sum256([]byte(v.Content))
		written, err := pg.Rows(ctx, r.db, r.account, pgx.RowTo[[]byte], writtenVersionSQL,
			pgx.NamedArgs{"account": r.account, "artifact": artifactIn(found[0], v.ID), "version": v.Version})
		if err != nil {
			return fmt.Errorf("finding a version of an artifact: %w", err)
		}
		if len(written) > 0 {
			if !bytes.Equal(written[0], content[:]) {
				r.note(protocol.ImportEntry{Reason: protocol.ImportArtifactsKept, Title: v.Title, ConversationID: &found[0], Count: 1})
			}
			return r.countPart(ctx, nil)
		}
		return r.countPart(ctx, func(batch *pgx.Batch, args pgx.NamedArgs) {
			maps.Copy(args, pgx.NamedArgs{
				"artifact": artifactIn(found[0], v.ID), "conversation": found[0], "kind": v.Kind, "language": v.Language, "version": v.Version, "title": v.Title,
				"by": v.CreatedBy, "content": v.Content, "bytes": len(v.Content), "sha256": content[:], "created": v.CreatedAt,
			})
			for _, sql := range []string{insertArtifactSQL, insertArtifactVersionSQL} {
				batch.Queue(sql, args)
			}
		})
	})
}
