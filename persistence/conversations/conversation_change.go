package conversations

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// ConversationWrite holds all fields of a conversation that a client may write; a write replaces all of them.
type ConversationWrite struct {
	Title    string // empty: no user title; an automatic title stays
	Profile  *protocol.Profile
	Metadata map[string]string

	Temporary *bool // of an unused conversation; nil: not, or as it is
}

// PutConversation creates a conversation under the client's identifier, or replaces its writable fields. A write that
// equals the stored values needs no version and changes nothing. Whether a conversation is temporary changes only while the
// conversation is unused: afterwards, a write that differs in that is a conflict with the current conversation.
func (s *Store) PutConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	write *ConversationWrite, version *int64,
) (conversation *protocol.Conversation, created bool, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if version == nil { // a client that sends a version knows that the conversation exists
			created, err = insertConversation(ctx, tx, account, &NewConversation{
				ConversationID: id, Title: write.Title, Profile: write.Profile, Metadata: write.Metadata,
				Temporary: write.Temporary != nil && *write.Temporary,
			})
			if err != nil {
				return err
			}
		}
		if !created {
			if err := replaceConversation(ctx, tx, account, id, write, version); err != nil {
				return err
			}
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, created, err
}

const updateConversationSQL = `
	update conversations
	set title = @title, title_source = @title_source, profile = @profile, metadata = @metadata, temporary = @temporary,
		version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation`

func replaceConversation(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ConversationID,
	write *ConversationWrite, version *int64,
) error {
	locked, err := LockConversation(ctx, tx, account, id)
	if err != nil {
		return err
	}
	title, source := write.titleAfter(locked)
	temporary := locked.Temporary
	if write.Temporary != nil {
		temporary = *write.Temporary
	}
	if temporary != locked.Temporary && (!locked.unused() || title != "") {
		current, err := readConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		return protocol.Conflict(protocol.CodeConflict, current, "A conversation can be made temporary or not only while it has no messages, no title and no project.")
	}
	same := temporary == locked.Temporary && title == locked.Title && source == locked.TitleSource &&
		equalProfiles(write.Profile, locked.Profile) && maps.Equal(write.Metadata, locked.Metadata)
	if err := locked.checkVersion(ctx, tx, account, id, version, !same); err != nil || same {
		return err
	}
	metadata := write.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	_, err = tx.Exec(ctx, updateConversationSQL, pgx.NamedArgs{
		"account": account, "conversation": id, "title": title, "title_source": source,
		"profile": write.Profile, "metadata": metadata, "temporary": temporary,
	})
	if err != nil {
		return fmt.Errorf("writing a conversation: %w", err)
	}
	return nil
}

// unused reports whether the conversation may still become temporary, or stop being so: nothing of it was searched for,
// shared, counted for a project or read by a model.
func (l *LockedConversation) unused() bool {
	return l.MessageCount == 0 && l.LiveTurnID == nil && l.ProjectID == nil && l.Title == ""
}

// titleAfter returns the title after the write and its source: the user's title if there is one, else the automatic
// title.
func (w *ConversationWrite) titleAfter(locked *LockedConversation) (title, source string) {
	switch {
	case w.Title == locked.Title, w.Title == "" && locked.TitleSource == "auto":
		return locked.Title, locked.TitleSource
	case w.Title == "":
		return "", "auto"
	}
	return w.Title, "user"
}

func equalProfiles(a, b *protocol.Profile) bool {
	return a == b || a != nil && b != nil && *a == *b
}

const updateTitleSQL = `
	update conversations
	set title = @title, title_source = 'user', version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation and (title, title_source) <> (@title, 'user')`

// SetTitle stores a title that the user chose. Without a version, the last writer wins.
func (s *Store) SetTitle(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	title string, version *int64,
) (conversation *protocol.Conversation, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := LockConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if err := locked.checkVersion(ctx, tx, account, id, version, false); err != nil {
			return err
		}
		args := pgx.NamedArgs{"account": account, "conversation": id, "title": title}
		if _, err := tx.Exec(ctx, updateTitleSQL, args); err != nil {
			return fmt.Errorf("setting a title: %w", err)
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, err
}
