package shares

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// carriedArtifacts are the artifacts of a share s. A share keeps them, as they were when it was created.
const carriedArtifacts = `(
		select n, artifact_id, kind, title, language, version, bytes from share_artifacts
		where account_id = s.account_id and share_id = s.share_id order by n limit 20) a`

const (
	sumArtifactsSQL = `
	select count(*)::int as count, coalesce(sum(bytes), 0)::int as bytes from artifacts
	where account_id = @account and conversation_id = @conversation and artifact_id = any(@artifacts)`
	// insertArtifactsSQL copies the current versions. Their numbers start at 1.
	insertArtifactsSQL = `
	insert into share_artifacts (account_id, share_id, n, artifact_id, version, kind, title, language, content, bytes, sha256)
	select a.account_id, @share, w.n, a.artifact_id, v.version, a.kind, v.title, a.language, v.content, v.bytes, v.sha256
	from unnest(@artifacts::uuid[]) with ordinality w (artifact_id, n)
	cross join lateral (
		select account_id, artifact_id, kind, language, version from artifacts
		where account_id = @account and artifact_id = w.artifact_id limit 1) a
	cross join lateral (
		select version, title, content, bytes, sha256 from artifact_versions
		where account_id = a.account_id and artifact_id = a.artifact_id and version = a.version limit 1) v`
)

// insertArtifacts copies the artifacts that a share carries. The caller has locked their conversation, so none changes meanwhile.
// One that is not of the conversation is protocol.CodeNotFound. room is how many bytes they may have.
func insertArtifacts(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, ids []protocol.ArtifactID, room int) error {
	if len(ids) == 0 {
		return nil
	}
	var found, bytes int
	if err := tx.QueryRow(ctx, sumArtifactsSQL, args).Scan(&found, &bytes); err != nil {
		return fmt.Errorf("finding the artifacts of a share: %w", err)
	}
	if err := allFound(found, len(ids)); err != nil {
		return err
	}
	if bytes > room {
		return protocol.Invalid("body.artifact_ids", fmt.Sprintf("lists too much: the artifacts and the text of the messages have more than %d MiB together", protocol.MaxSharedBytes>>20))
	}
	if _, err := tx.Exec(ctx, insertArtifactsSQL, args); err != nil {
		return fmt.Errorf("storing the artifacts of a share: %w", err)
	}
	return nil
}

const shareableArtifactsSQL = `
	select artifact_id, kind, title, version, bytes, count(*) over ()::int as count
	from artifacts
	where account_id = @account and conversation_id = @conversation
	order by conversation_id desc, artifact_id desc limit @limit`

type countedArtifact struct {
	protocol.ShareableArtifact
	Count int
}

// shareableArtifacts returns the newest artifacts of a conversation, and the number of all.
func (s *Store) shareableArtifacts(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID) (artifacts []protocol.ShareableArtifact, count int, err error) {
	found, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[countedArtifact], shareableArtifactsSQL, pgx.NamedArgs{
		"account": account, "conversation": conversation, "limit": protocol.MaxShareableArtifacts,
	})
	if err != nil {
		return nil, 0, fmt.Errorf("finding the artifacts of a conversation: %w", err)
	}
	artifacts = make([]protocol.ShareableArtifact, len(found))
	for i := range found {
		artifacts[i], count = found[i].ShareableArtifact, found[i].Count
	}
	return artifacts, count, nil
}

const (
	openArtifactSQL = `
	select s.account_id, s.share_id, s.created_at, a.n, a.kind, a.title, a.language, a.sha256
	from shares s
	cross join lateral (
		select n, kind, title, language, encode(sha256, 'hex') as sha256 from share_artifacts
		where account_id = s.account_id and share_id = s.share_id and n = @n limit 1) a
	join accounts o on o.account_id = s.account_id and o.disabled_at is null
	where s.account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid
	  and s.token_hash = @hash and ` + readableSQL
	artifactContentSQL = `select content from share_artifacts where account_id = @account and share_id = @share and n = @n`
)

// OpenedArtifact is an artifact of a share that was found by its token.
type OpenedArtifact struct {
	Ref
	CreatedAt time.Time // of the share
	N         int
	Kind      protocol.ArtifactKind
	Title     string
	Language  *string
	SHA256    string
}

// OpenArtifact returns the artifact with a number of the share whose token has a hash. The error is protocol.CodeNotFound if
// Open returned it for the first page, and if the share has no such artifact.
func (s *Store) OpenArtifact(ctx context.Context, hash []byte, n int) (*OpenedArtifact, error) {
	return open[OpenedArtifact](ctx, s, hash, openArtifactSQL, pgx.NamedArgs{"hash": hash, "n": n})
}

// ArtifactContent returns the content of an artifact of a share. The error is protocol.CodeNotFound if the share has ended.
func (s *Store) ArtifactContent(ctx context.Context, of *OpenedArtifact) (string, error) {
	return pg.Row(ctx, s.db, of.AccountID, pgx.RowTo[string], artifactContentSQL, pgx.NamedArgs{"account": of.AccountID, "share": of.ShareID, "n": of.N})
}
