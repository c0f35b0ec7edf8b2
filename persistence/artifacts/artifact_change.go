package artifacts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

// Change is a change that the user makes.
type Change struct {
	ArtifactID protocol.ArtifactID
	Version    *int64 // that the user saw, or protocol.AnyVersion; nil: the client sent none
}

// checkVersion returns a conflict with the current artifact unless the client sent its version. A repetition of what is stored
// needs no version.
func (c *Change) checkVersion(current *protocol.Artifact, same bool) error {
	switch {
	case c.Version != nil && protocol.MatchesVersion(*c.Version, current.Version), c.Version == nil && same:
		return nil
	case c.Version == nil:
		return protocol.Conflict(protocol.CodeVersionRequired, current, "Send the version you are changing in the If-Match header.")
	default:
		return protocol.Conflict(protocol.CodeStaleVersion, current, "The artifact has changed since that version.")
	}
}

// Put stores a new version with a content; a title that is empty stays. A repetition of what is stored changes nothing.
func (s *Store) Put(ctx context.Context, account protocol.AccountID, change *Change, title, content string) (*protocol.Artifact, error) {
	return s.change(ctx, account, change, func(_ context.Context, _ *pg.Tx, current *protocol.Artifact) (*draft, error) {
		content, err := normalize(current.Kind, content)
		if err != nil {
			return nil, protocol.Invalid("body.content", err.Error())
		}
		if title == "" {
			title = current.Title
		}
		return &draft{title: title, content: content}, nil
	})
}

const versionSQL = `
	select title, content from artifact_versions where account_id = @account and artifact_id = @artifact and version = @version`

// Restore stores the content and the title of an older version as a new one. A version that the artifact does not have is a
// wrong value.
func (s *Store) Restore(ctx context.Context, account protocol.AccountID, change *Change, version int64) (*protocol.Artifact, error) {
	return s.change(ctx, account, change, func(ctx context.Context, tx *pg.Tx, _ *protocol.Artifact) (*draft, error) {
		var d draft
		err := tx.QueryRow(ctx, versionSQL, pgx.NamedArgs{"account": account, "artifact": change.ArtifactID, "version": version}).Scan(&d.title, &d.content)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, protocol.Invalid("body.version", "is not a version of the artifact")
		}
		return &d, err
	})
}

// draft is what the next version of an artifact is.
type draft struct {
	title, content string
	by             protocol.ArtifactAuthor
	message        *protocol.MessageID
	tool           *protocol.ToolID
}

const (
	conversationSQL = `select conversation_id from artifacts where account_id = @account and artifact_id = @artifact`
	currentSQL      = `
	select ` + columns + `, v.content
	from artifacts a
	join artifact_versions v on v.account_id = a.account_id and v.artifact_id = a.artifact_id and v.version = a.version
	where a.account_id = @account and a.artifact_id = @artifact`
)

// stored is an artifact with the content of its current version.
type stored struct {
	protocol.Artifact
	Content string
}

// change changes an artifact on behalf of the user.
func (s *Store) change(
	ctx context.Context, account protocol.AccountID, change *Change, next func(context.Context, *pg.Tx, *protocol.Artifact) (*draft, error),
) (changed *protocol.Artifact, err error) {
	if err := s.db.CheckSpace(); err != nil {
		return nil, err
	}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		var conversation protocol.ConversationID
		if err := tx.QueryRow(ctx, conversationSQL, pgx.NamedArgs{"account": account, "artifact": change.ArtifactID}).Scan(&conversation); err != nil {
			return err
		}
		locked, err := conversations.LockConversation(ctx, tx, account, conversation)
		if err != nil {
			return err
		}
		current, err := read(ctx, tx, account, change.ArtifactID)
		if err != nil {
			return err
		}
		d, err := next(ctx, tx, &current.Artifact)
		if err != nil {
			return err
		}
		d.by = protocol.ByUser
		same := d.title == current.Title && d.content == current.Content
		if err := change.checkVersion(&current.Artifact, same); err != nil {
			return err
		}
		if changed = &current.Artifact; same {
			return nil
		}
		if err := checkWritable(ctx, tx, account, locked.ProjectID); err != nil {
			return err
		}
		changed, err = s.add(ctx, tx, account, current, d)
		return err
	})
	return changed, err
}

// checkWritable returns an error if a project is read-only; nil is no project.
func checkWritable(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id *protocol.ProjectID) error {
	if id == nil {
		return nil
	}
	project, err := projects.Read(ctx, tx, account, *id)
	if err != nil {
		return err
	}
	return projects.CheckActive(project)
}

func read(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ArtifactID) (*stored, error) {
	rows, err := tx.Query(ctx, currentSQL, pgx.NamedArgs{"account": account, "artifact": id})
	if err != nil {
		return nil, fmt.Errorf("reading an artifact: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[stored])
}

const (
	insertArtifactSQL = `
	insert into artifacts (account_id, artifact_id, conversation_id, message_id, kind, language, title, version, created_by, bytes, sha256)
	values (@account, @artifact, @conversation, @message, @kind, @language, @title, @version, @by, @bytes, @sha256)`
	insertVersionSQL = `
	insert into artifact_versions (account_id, artifact_id, version, message_id, tool_id, title, created_by, content, bytes, sha256)
	values (@account, @artifact, @version, @message, @tool, @title, @by, @content, @bytes, @sha256)`
	updateArtifactSQL = `
	update artifacts set title = @title, version = @version, created_by = @by, bytes = @bytes, sha256 = @sha256, updated_at = now()
	where account_id = @account and artifact_id = @artifact`
	dropOldSQL = `
	delete from artifact_versions where account_id = @account and artifact_id = @artifact and version <= @version - @most::bigint`
)

// add stores the next version of an artifact, whose conversation is locked, and drops the versions beyond the limit.
func (s *Store) add(ctx context.Context, tx *pg.Tx, account protocol.AccountID, of *stored, d *draft) (*protocol.Artifact, error) {
	args, err := s.prepare(ctx, tx, account, &of.Artifact, of.Version+1, d)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, tx, account, of.ArtifactID, args, updateArtifactSQL, insertVersionSQL, dropOldSQL)
}

// create stores a new artifact with its first version.
func (s *Store) create(ctx context.Context, tx *pg.Tx, account protocol.AccountID, a *protocol.Artifact, d *draft) (*protocol.Artifact, error) {
	args, err := s.prepare(ctx, tx, account, a, 1, d)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, tx, account, a.ArtifactID, args, insertArtifactSQL, insertVersionSQL)
}

// prepare checks the limits of a version and returns the arguments of the statements that store it.
func (s *Store) prepare(ctx context.Context, tx *pg.Tx, account protocol.AccountID, a *protocol.Artifact, version int64, d *draft) (pgx.NamedArgs, error) {
	size := len(d.content)
	if size > protocol.MaxArtifactBytes {
		return nil, protocol.Errorf(protocol.CodeTooLarge, "The content has %d bytes. A version of an artifact has at most %d.", size, protocol.MaxArtifactBytes)
	}
	if err := s.quota.CheckBytes(ctx, tx, account, size); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(d.content))
	return pgx.NamedArgs{
		"account": account, "artifact": a.ArtifactID, "conversation": a.ConversationID, "kind": a.Kind, "language": a.Language, "version": version,
		"message": d.message, "tool": d.tool, "title": d.title, "by": d.by, "content": d.content, "bytes": size, "sha256": sum[:],
		"most": protocol.MaxArtifactVersions,
	}, nil
}

func (s *Store) run(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ArtifactID, args pgx.NamedArgs, statements ...string) (*protocol.Artifact, error) {
	batch := &pgx.Batch{}
	for _, sql := range statements {
		batch.Queue(sql, args)
	}
	if err := tx.Run(ctx, batch); err != nil {
		return nil, fmt.Errorf("storing a version of an artifact: %w", err)
	}
	made, err := read(ctx, tx, account, id)
	if err != nil {
		return nil, err
	}
	return &made.Artifact, nil
}

// normalize returns the form in which the content of an artifact is stored. The error is for the author.
func normalize(kind protocol.ArtifactKind, content string) (string, error) {
	if strings.Contains(content, "\x00") {
		return "", errors.New("must not have the character U+0000")
	}
	if kind == protocol.ArtifactTable {
		return parseTable(content)
	}
	return content, nil
}
