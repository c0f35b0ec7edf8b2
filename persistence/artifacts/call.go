package artifacts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func refuse(code protocol.ToolErrorCode, format string, args ...any) error {
	return &turnlog.Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
}

const (
	writtenSQL = `
	select v.tool_id, a.artifact_id, a.conversation_id, a.message_id, a.kind, v.title, a.language, v.version, v.created_by, v.bytes, encode(v.sha256, 'hex') as sha256,
		a.created_at, v.created_at as updated_at
	from artifacts a join artifact_versions v on v.account_id = a.account_id and v.artifact_id = a.artifact_id
	where v.account_id = @account and v.tool_id = any(@tools)`
	answerSQL = `select assistant_message_id from turns where account_id = @account and turn_id = @turn`
	countSQL  = `select count(*) from (select from artifacts where account_id = @account and conversation_id = @conversation limit @most) a`
)

// WriteByCall writes what a call of a tool asks for, once: a call that is run again gets the version that it has written. The
// artifact is as of that version. A *turnlog.Refusal says why nothing was written.
func (s *Store) WriteByCall(ctx context.Context, w *turnlog.ArtifactWrite) (written *protocol.Artifact, err error) {
	if err := s.db.CheckSpace(); err != nil {
		return nil, err
	}
	err = s.db.InTx(ctx, w.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := conversations.LockConversation(ctx, tx, w.AccountID, w.ConversationID)
		if err != nil {
			return err
		}
		if written, err = earlier(ctx, tx, w); err != nil || written != nil {
			return err
		}
		if err := checkWritable(ctx, tx, w.AccountID, locked.ProjectID); err != nil {
			return err
		}
		written, err = s.writeByCall(ctx, tx, w)
		return err
	})
	var known *protocol.Error
	switch {
	case err == nil || !errors.As(err, &known):
		return written, err
	case known.Code == protocol.CodeTooLarge:
		return nil, refuse(turnlog.RefusedSize, "%s Nothing was stored.", known.Detail)
	case known.Code == protocol.CodeNotFound:
		return nil, refuse(turnlog.RefusedMissing, "The conversation has no artifact with this id.")
	case known.Code == protocol.CodeConflict:
		return nil, refuse(turnlog.RefusedProject, "%s", known.Detail)
	}
	return nil, err
}

// writtenBy is an artifact as of the version that a call has written.
type writtenBy struct {
	ToolID protocol.ToolID
	protocol.Artifact
}

// earlier returns what an earlier run of the call has written; nil: nothing.
func earlier(ctx context.Context, tx *pg.Tx, w *turnlog.ArtifactWrite) (*protocol.Artifact, error) {
	rows, err := tx.Query(ctx, writtenSQL, pgx.NamedArgs{"account": w.AccountID, "tools": []protocol.ToolID{w.ToolID}})
	if err != nil {
		return nil, fmt.Errorf("reading what a call wrote: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[writtenBy])
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0].Artifact, nil
}

// WrittenByCall returns what a call has written under some identifiers, as of these versions. Those that wrote nothing are absent.
func (s *Store) WrittenByCall(ctx context.Context, scope turnlog.Scope, by []protocol.ToolID) (map[protocol.ToolID]*protocol.Artifact, error) {
	found, err := pg.Rows(ctx, s.db, scope.AccountID, pgx.RowToStructByName[writtenBy], writtenSQL, pgx.NamedArgs{"account": scope.AccountID, "tools": by})
	if err != nil {
		return nil, fmt.Errorf("reading what a call wrote: %w", err)
	}
	written := map[protocol.ToolID]*protocol.Artifact{}
	for i := range found {
		written[found[i].ToolID] = &found[i].Artifact
	}
	return written, nil
}

func (s *Store) writeByCall(ctx context.Context, tx *pg.Tx, w *turnlog.ArtifactWrite) (*protocol.Artifact, error) {
	d := &draft{title: w.Title, by: protocol.ByModel, tool: &w.ToolID}
	var message protocol.MessageID
	switch err := tx.QueryRow(ctx, answerSQL, pgx.NamedArgs{"account": w.AccountID, "turn": w.TurnID}).Scan(&message); {
	case err == nil:
		d.message = &message
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("reading the answer of a call: %w", err)
	}
	if w.Artifact.IsZero() {
		return s.createByCall(ctx, tx, w, d)
	}
	current, err := read(ctx, tx, w.AccountID, w.Artifact)
	if err == nil && current.ConversationID != w.ConversationID {
		err = pgx.ErrNoRows
	}
	if err != nil {
		return nil, err
	}
	if w.BaseVersion != current.Version {
		return nil, s.stale(ctx, tx, w, current)
	}
	if d.title == "" {
		d.title = current.Title
	}
	if d.content, err = contentOf(w, current); err != nil {
		return nil, err
	}
	if d.title == current.Title && d.content == current.Content {
		return &current.Artifact, nil
	}
	return s.add(ctx, tx, w.AccountID, current, d)
}

func (s *Store) createByCall(ctx context.Context, tx *pg.Tx, w *turnlog.ArtifactWrite, d *draft) (*protocol.Artifact, error) {
	var count int
	args := pgx.NamedArgs{"account": w.AccountID, "conversation": w.ConversationID, "most": protocol.MaxArtifacts}
	if err := tx.QueryRow(ctx, countSQL, args).Scan(&count); err != nil {
		return nil, fmt.Errorf("counting artifacts: %w", err)
	}
	if count >= protocol.MaxArtifacts {
		return nil, refuse(turnlog.RefusedTooMany, "The conversation has %d artifacts, which is the limit. Write a new version of one of them.", count)
	}
	var err error
	made := &protocol.Artifact{ArtifactID: protocol.DeriveArtifactID(w.ToolID), ConversationID: w.ConversationID, Kind: w.Kind}
	if w.Language != "" {
		made.Language = &w.Language
	}
	if d.content, err = contentOf(w, &stored{Artifact: *made}); err != nil {
		return nil, err
	}
	return s.create(ctx, tx, w.AccountID, made, d)
}

// content returns the content of the next version.
func contentOf(w *turnlog.ArtifactWrite, current *stored) (string, error) {
	content := current.Content
	if w.Content != nil {
		content = *w.Content
	}
	for i, edit := range w.Edits {
		switch n := strings.Count(content, edit.Old); {
		case edit.Old == "" || n == 0:
			return "", refuse(turnlog.RefusedInput,
				"The old text of edit %d does not occur in version %d. Nothing was stored. Read the artifact again, and copy the text exactly.", i+1, current.Version)
		case n > 1:
			return "", refuse(turnlog.RefusedInput, "The old text of edit %d occurs %d times. Nothing was stored. Add the text around it, so that it occurs once.", i+1, n)
		}
		content = strings.Replace(content, edit.Old, edit.New, 1)
		if len(content) > 2*protocol.MaxArtifactBytes {
			break // prepare refuses it
		}
	}
	content, err := normalize(current.Kind, content)
	if err != nil {
		return "", refuse(turnlog.RefusedInput, "The content %s. Nothing was stored.", err)
	}
	return content, nil
}

// maxShownDiff limits the difference that a refusal shows, in bytes.
const maxShownDiff = 4 << 10

// stale returns the refusal of a write that is not based on the current version. It shows what has changed since.
func (s *Store) stale(ctx context.Context, tx *pg.Tx, w *turnlog.ArtifactWrite, current *stored) error {
	by := map[protocol.ArtifactAuthor]string{protocol.ByUser: "the user", protocol.ByModel: "you"}[current.CreatedBy]
	text := fmt.Sprintf("Nothing was stored: the artifact is now at version %d, which %s wrote. ", current.Version, by)
	var base draft
	err := tx.QueryRow(ctx, versionSQL, pgx.NamedArgs{"account": w.AccountID, "artifact": w.Artifact, "version": w.BaseVersion}).Scan(&base.title, &base.content)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return refuse(turnlog.RefusedStale, "%sIt has no version %d. Read the artifact, and base the change on version %d.", text, w.BaseVersion, current.Version)
	case err != nil:
		return fmt.Errorf("reading the base of a change: %w", err)
	}
	shown := unified(compare(base.content, current.Content), maxShownDiff)
	return refuse(turnlog.RefusedStale, "%sKeep these changes since version %d, and base yours on version %d:\n%s", text, w.BaseVersion, current.Version, shown)
}

const listForCallSQL = `
	select ` + columns + ` from artifacts a
	where a.account_id = @account and a.conversation_id = @conversation
	order by a.conversation_id desc, a.artifact_id desc limit @limit`

// ListForCall returns the newest artifacts of the conversation of a call.
func (s *Store) ListForCall(ctx context.Context, scope turnlog.Scope, limit int) ([]protocol.Artifact, error) {
	found, err := conversations.RowsOfConversation[protocol.Artifact](ctx, s.db, scope.AccountID, listForCallSQL,
		pgx.NamedArgs{"account": scope.AccountID, "conversation": scope.ConversationID, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("listing artifacts: %w", err)
	}
	return found, nil
}

// ReadForCall reads a version of an artifact of the conversation of a call; nil: the current one. An artifact of another
// conversation is protocol.CodeNotFound.
func (s *Store) ReadForCall(ctx context.Context, scope turnlog.Scope, id protocol.ArtifactID, version *int64) (*turnlog.ArtifactContent, error) {
	found, err := s.Content(ctx, scope.AccountID, id, version)
	if err == nil && found.ConversationID != scope.ConversationID {
		return nil, pg.NotFound()
	}
	return found, err
}
