package imports

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

// filesSQL finds what files of an export are here: the account's own file, or what an import made of it. A file that was not
// imported has a row without an identifier.
const filesSQL = `
	select distinct on (s.id) s.id, f.file_id, i.name
	from unnest(@ids::uuid[]) as s (id)
	left join lateral (
		select item_id, source_id, name from import_items where account_id = @account and kind = 'file' and source_id = s.id limit 1) i on true
	left join lateral (
		(select file_id, deleted_at from files where account_id = @account and file_id = s.id limit 1)
		union all
		(select file_id, deleted_at from files where account_id = @account and file_id = i.item_id limit 1)) f on true
	where f.file_id is not null or i.source_id is not null
	order by s.id, f.deleted_at is null desc, f.file_id = i.item_id desc`

// linkRows is the number of files that one statement finds.
const linkRows = 1000

type linkedFile struct {
	Source protocol.FileID
	Here   *protocol.FileID // nil: it was not imported
	Name   *string          // then
}

// link replaces the files that the conversation names by those of the account. A message that had a file which is not here gets a
// notice in its place.
func (w *writing) link(ctx context.Context) error {
	known, err := w.linked(ctx)
	if err != nil {
		return err
	}
	l := &links{known: known, lost: map[protocol.FileID]protocol.ImportReason{}}
	for i := range w.tree.Messages {
		m := &w.tree.Messages[i]
		var absent []string
		m.Attachments, absent = l.replace(m.Attachments)
		for k := range m.Parts {
			l.part(&m.Parts[k])
			w.artifact(&m.Parts[k])
		}
		for _, name := range absent {
			m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartNotice, PartID: protocol.NewPartID(), Kind: protocol.NoticeAttachmentAbsent, Text: name})
		}
	}
	w.c.DraftAttachments, _ = l.replace(w.c.DraftAttachments)
	if w.c.Notes == nil {
		w.c.Notes = map[protocol.ImportReason]int{}
	}
	kept := w.c.FollowUps[:0]
	for _, f := range w.c.FollowUps {
		if f.Attachments, _ = l.replace(f.Attachments); f.Content == "" && len(f.Attachments) == 0 { // it had nothing but files
			w.c.Notes[protocol.ImportFollowUpsSkipped]++
			continue
		}
		kept = append(kept, f)
	}
	w.c.FollowUps = kept
	for _, reason := range l.lost {
		w.c.Notes[reason]++
	}
	return nil
}

// linked finds all files that the conversation names.
func (w *writing) linked(ctx context.Context) (map[protocol.FileID]linkedFile, error) {
	known := map[protocol.FileID]linkedFile{}
	var ids []protocol.FileID
	add := func(files ...protocol.FileID) {
		for _, id := range files {
			if _, twice := known[id]; !twice {
				known[id] = linkedFile{}
				ids = append(ids, id)
			}
		}
	}
	for i := range w.tree.Messages {
		add(w.tree.Messages[i].Attachments...)
		for k := range w.tree.Messages[i].Parts {
			p := &w.tree.Messages[i].Parts[k]
			for _, source := range p.Sources {
				add(source.FileID)
			}
			for _, citation := range p.Citations {
				if citation.FileID != nil {
					add(*citation.FileID)
				}
			}
		}
	}
	add(w.c.DraftAttachments...)
	for i := range w.c.FollowUps {
		add(w.c.FollowUps[i].Attachments...)
	}
	clear(known)
	for ; len(ids) > 0; ids = ids[min(linkRows, len(ids)):] {
		found, err := pg.Rows(ctx, w.db, w.account, pgx.RowToStructByPos[linkedFile], filesSQL,
			pgx.NamedArgs{"account": w.account, "ids": uuids(ids[:min(linkRows, len(ids))])})
		if err != nil {
			return nil, fmt.Errorf("finding files of an export: %w", err)
		}
		for _, file := range found {
			known[file.Source] = file
		}
	}
	return known, nil
}

// links replaces the identifiers of files.
type links struct {
	known map[protocol.FileID]linkedFile
	lost  map[protocol.FileID]protocol.ImportReason // files that are not here, and why
}

// find returns the file of the account; nil: it is not here.
func (l *links) find(id protocol.FileID) *protocol.FileID {
	file, known := l.known[id]
	switch {
	case file.Here != nil:
		return file.Here
	case known:
		l.lost[id] = protocol.ImportAttachmentsLost
	default:
		l.lost[id] = protocol.ImportAttachmentsAbsent
	}
	return nil
}

// replace returns the files of the account, and the names of those that are not here.
func (l *links) replace(ids []protocol.FileID) (here []protocol.FileID, absent []string) {
	for _, id := range ids {
		if file := l.find(id); file != nil {
			here = append(here, *file)
			continue
		}
		name := "a file"
		if known := l.known[id].Name; known != nil && *known != "" {
			name = *known
		}
		absent = append(absent, name)
	}
	return here, absent
}

// artifact replaces the artifact of a part by the one that the import creates.
func (w *writing) artifact(p *protocol.Part) {
	if p.ArtifactID != nil {
		id := artifactIn(w.id, *p.ArtifactID)
		p.ArtifactID = &id
	}
}

// part replaces the files that a part cites or shows. A citation of a file that is not here keeps its text; the source of a tool
// needs its file.
func (l *links) part(p *protocol.Part) {
	for i := range p.Citations {
		if c := &p.Citations[i]; c.FileID != nil {
			c.FileID = l.find(*c.FileID)
		}
	}
	kept := p.Sources[:0]
	for _, source := range p.Sources {
		if file := l.find(source.FileID); file != nil {
			source.FileID = *file
			kept = append(kept, source)
		}
	}
	p.Sources = kept
}

const lockProjectSQL = `
	select project_id from projects where account_id = @account and project_id = @project and deleted_at is null for no key update`

// join finds the project of the conversation, and locks it, so that it is not deleted meanwhile.
func (w *writing) join(ctx context.Context, tx *pg.Tx) error {
	if w.project == nil {
		return nil
	}
	args := pgx.NamedArgs{"account": w.account, "project": *w.project}
	tag, err := tx.Exec(ctx, lockProjectSQL, args)
	if err != nil {
		return fmt.Errorf("finding the project of a conversation: %w", err)
	}
	if tag.RowsAffected() == 0 { // it was deleted since it was found
		w.project = nil
		w.note(protocol.ImportEntry{Reason: protocol.ImportProjectAbsent, Title: w.c.Title, ConversationID: &w.id, Count: 1})
		return nil
	}
	batch := &pgx.Batch{}
	projects.Work{Kind: protocol.WorkConversationCreated, ConversationID: &w.id}.Queue(batch, w.account, *w.project)
	return tx.Run(ctx, batch)
}

// findProject finds the project of the conversation.
func (w *writing) findProject(ctx context.Context) error {
	if w.c.ProjectID.IsZero() {
		return nil
	}
	known, err := w.knownProjects(ctx, w.c.ProjectID)
	if err != nil {
		return err
	}
	if len(known) == 0 {
		w.note(protocol.ImportEntry{Reason: protocol.ImportProjectAbsent, Title: w.c.Title, ConversationID: &w.id, Count: 1})
		return nil
	}
	w.project = &known[0].Here
	return nil
}
