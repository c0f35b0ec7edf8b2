package artifacts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/files"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Store stores artifacts. Its methods may be called from any goroutine.
type Store struct {
	db    *pg.DB
	quota files.Quota
}

// New returns a store whose artifacts count in a quota; zero: files.DefaultQuota.
func New(db *pg.DB, quota files.Quota) *Store {
	if quota == (files.Quota{}) {
		quota = files.DefaultQuota
	}
	return &Store{db, quota}
}

// columns are the fields of a protocol.Artifact, of an artifact a.
const columns = `
	a.artifact_id, a.conversation_id, a.message_id, a.kind, a.title, a.language, a.version, a.created_by, a.bytes, encode(a.sha256, 'hex') as sha256,
	a.created_at, a.updated_at`

// visibleSQL selects an artifact that the account may see.
const visibleSQL = `
	from artifacts a
	join conversations c on c.account_id = a.account_id and c.conversation_id = a.conversation_id
	where a.account_id = @account and a.artifact_id = @artifact and ` + conversations.Visible

const (
	artifactSQL = `select ` + columns + visibleSQL
	ownsSQL     = `select true` + visibleSQL
	listSQL     = `
	select ` + columns + `
	from artifacts a
	where a.account_id = @account and a.conversation_id = @conversation and a.artifact_id < @after
	order by a.conversation_id desc, a.artifact_id desc
	limit @limit`
)

// Artifact reads one artifact.
func (s *Store) Artifact(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID) (*protocol.Artifact, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Artifact], artifactSQL, pgx.NamedArgs{"account": account, "artifact": id})
}

// OwnsArtifact returns protocol.CodeNotFound unless the account has the artifact. It is called before a body is read.
func (s *Store) OwnsArtifact(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsSQL, pgx.NamedArgs{"account": account, "artifact": id})
	return err
}

// List returns a page of the artifacts of a conversation, newest first, after an artifact; nil starts at the beginning. next is
// nil at the end.
func (s *Store) List(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, after *protocol.ArtifactID, limit int) (
	page []protocol.Artifact, next *protocol.ArtifactID, err error,
) {
	args := pgx.NamedArgs{"account": account, "conversation": conversation, "after": pg.HighestID, "limit": limit + 1}
	if after != nil {
		args["after"] = *after
	}
	found, err := conversations.RowsOfConversation[protocol.Artifact](ctx, s.db, account, listSQL, args)
	if err != nil {
		return nil, nil, fmt.Errorf("listing artifacts: %w", err)
	}
	page, more, err := pg.CutPage(found, limit)
	if err != nil || !more {
		return page, nil, err
	}
	return page, &page[len(page)-1].ArtifactID, nil
}

const versionColumns = `v.artifact_id, v.version, v.title, v.created_by, v.message_id, v.bytes, encode(v.sha256, 'hex') as sha256, v.created_at`

const (
	versionsSQL = `
	select ` + versionColumns + `
	from artifact_versions v
	where v.account_id = @account and v.artifact_id = @artifact and v.version < @after
	order by v.version desc
	limit @limit`
	contentSQL = `
	select a.kind, a.language, a.conversation_id, ` + versionColumns + `, v.content
	from artifacts a
	join conversations c on c.account_id = a.account_id and c.conversation_id = a.conversation_id
	join artifact_versions v on v.account_id = a.account_id and v.artifact_id = a.artifact_id and v.version = coalesce(@version, a.version)
	where a.account_id = @account and a.artifact_id = @artifact and ` + conversations.Visible
)

// Versions returns a page of the versions of an artifact, newest first, before a version; nil starts at the current one. next is
// nil at the end.
func (s *Store) Versions(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID, before *int64, limit int) (
	page []protocol.ArtifactVersion, next *int64, err error,
) {
	if err := s.OwnsArtifact(ctx, account, id); err != nil {
		return nil, nil, err
	}
	const newest = 1<<63 - 1
	args := pgx.NamedArgs{"account": account, "artifact": id, "after": int64(newest), "limit": limit + 1}
	if before != nil {
		args["after"] = *before
	}
	found, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.ArtifactVersion], versionsSQL, args)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the versions of an artifact: %w", err)
	}
	page, more, err := pg.CutPage(found, limit)
	if err != nil || !more {
		return page, nil, err
	}
	return page, &page[len(page)-1].Version, nil
}

// Content reads a version of an artifact; nil: the current one.
func (s *Store) Content(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID, version *int64) (*turnlog.ArtifactContent, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[turnlog.ArtifactContent], contentSQL,
		pgx.NamedArgs{"account": account, "artifact": id, "version": version})
}

// Diff compares two versions of an artifact, which it still has.
func (s *Store) Diff(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID, from, to int64) (*protocol.ArtifactDiff, error) {
	older, err := s.Content(ctx, account, id, &from)
	if err != nil {
		return nil, err
	}
	newer, err := s.Content(ctx, account, id, &to)
	if err != nil {
		return nil, err
	}
	diff := compare(older.Content, newer.Content)
	diff.ArtifactID, diff.From, diff.To = id, from, to
	return diff, nil
}
