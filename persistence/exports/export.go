package exports

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"turnstone/persistence/conversations"
	"turnstone/persistence/exports/archive"
	"turnstone/persistence/files"
	"turnstone/persistence/followups"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Store writes exports. Its methods may be called from any goroutine.
type Store struct {
	db            *pg.DB
	conversations *conversations.Store
	followUps     *followups.Store
	files         *files.Store
	sections      []archive.Section
}

// Others are the sections of other nouns, by their place in an archive.
type Others struct{ BeforeConversations, BeforeFiles, AtEnd []archive.Section }

// New returns a store that reads conversations and files from other stores.
func New(db *pg.DB, conversations *conversations.Store, followUps *followups.Store, files *files.Store, others Others) *Store {
	s := &Store{db: db, conversations: conversations, followUps: followUps, files: files}
	s.sections = slices.Concat(others.BeforeConversations, []archive.Section{
		{What: "conversations", Path: "conversations/", Write: s.allConversations},
		{What: "artifacts", Path: "artifacts.json", Write: s.allArtifacts},
	}, others.BeforeFiles, []archive.Section{{What: "files", Path: "files.json", Write: s.allFiles}}, others.AtEnd)
	return s
}

// Paths returns the files of an archive besides its manifest. A folder ends with a slash.
func (s *Store) Paths() []string {
	paths := make([]string, len(s.sections))
	for i, section := range s.sections {
		paths[i] = section.Path
	}
	return paths
}

// consistency is the text of the manifest; doc.go explains it.
const consistency = "A conversation that existed from started_at to finished_at is in the archive exactly once. " +
	"Each file shows the account at the time when the file was written; messages that were added since then are missing. " +
	"An answer with the status streaming was not finished. Temporary conversations, deleted projects and the conversations in them are left out."

// buffer is the size of the writes that the reader of an export gets.
const buffer = 64 << 10

// Export is an export of an account whose lease was taken.
type Export struct {
	store   *Store
	account protocol.AccountID
	lease   *lease
	ctx     context.Context // ends when the lease is lost
}

// Begin starts the export of an account. If another one is running, the error is protocol.CodeConflict with a Running.
// The caller calls Close in any case.
func (s *Store) Begin(ctx context.Context, account protocol.AccountID) (*Export, error) {
	ctx, lease, err := take(ctx, s.db, account)
	if err != nil {
		return nil, err
	}
	return &Export{s, account, lease, ctx}, nil
}

// Close lets the account start another export.
func (e *Export) Close() { e.lease.release(e.ctx) }

// WriteArchive writes the archive. After an error, what was written is not an archive: its end is missing. The speed of the
// export is that of the reader, for which no transaction and no connection to the database waits.
func (e *Export) WriteArchive(to io.Writer) error {
	buffered := bufio.NewWriterSize(to, buffer)
	manifest := &protocol.ExportManifest{
		Format: protocol.ExportFormat, Version: protocol.ExportVersion, AccountID: e.account,
		StartedAt: now(), Consistency: consistency,
	}
	of := archive.New(buffered, manifest.StartedAt)
	for _, section := range e.store.sections {
		if err := section.Write(e.ctx, e.account, of); err != nil {
			return fmt.Errorf("exporting the %s of an account: %w", section.What, err)
		}
	}
	manifest.FinishedAt = now()
	return errors.Join(of.Finish(manifest), buffered.Flush())
}

func now() time.Time { return protocol.Millis(time.Now()) }

// Document is one conversation that is ready to be written. Title and Temporary describe it.
type Document struct {
	Title     string
	Temporary bool

	source *source
}

// Conversation prepares the export of one conversation; protocol.CodeNotFound if the account does not have it.
func (s *Store) Conversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*Document, error) {
	source, err := s.open(ctx, account, id)
	if err != nil {
		return nil, err
	}
	source.alone = true
	return &Document{source.page.Title, source.page.Temporary, source}, nil
}

// WriteJSON writes a protocol.ConversationExport.
func (d *Document) WriteJSON(ctx context.Context, to io.Writer) error {
	buffered := bufio.NewWriterSize(to, buffer)
	if err := d.source.writeJSON(ctx, buffered); err != nil {
		return err
	}
	return buffered.Flush()
}

// WriteMarkdown writes the conversation as text for people: the active branch, then the others.
func (d *Document) WriteMarkdown(ctx context.Context, to io.Writer) error {
	buffered := bufio.NewWriterSize(to, buffer)
	if err := d.source.writeMarkdown(ctx, buffered); err != nil {
		return err
	}
	return buffered.Flush()
}
