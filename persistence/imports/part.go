package imports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"mime"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/accounts"
	"turnstone/persistence/imports/source"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/filetype"
	"turnstone/protocol/uploadlog"
)

// ReceiveFile receives the content of a file in an upload, as if a client had sent it: within the quota of the account,
// while the disk has space, into quarantine and through the malware scanner. It returns the session when that has ended. A
// session with this identifier that an interrupted run has created is continued. open is called at most once.
//
// A session that has ended without a file is no error, and its failure says why: also when its content cannot be opened or read, if another
// attempt would not help. The errors are those of the creation of a session, and protocol.CodeUnavailable if another attempt may succeed.
type ReceiveFile func(ctx context.Context, spec *uploadlog.Spec, open func() (io.ReadCloser, error)) (*protocol.Upload, error)

// part imports a project, a version of instructions, a prompt or a file of an export, unless an earlier run has handled it.
func (r *run) part(write func() error) error {
	if r.parts++; r.parts <= r.handledParts {
		return nil
	}
	if err := r.db.CheckSpace(); err != nil {
		return err
	}
	return write()
}

// countPartSQL counts a part as handled. As countSQL, it changes nothing if the import was cancelled or another run has started.
const countPartSQL = `
	update imports
	set parts = parts + 1, projects = projects + @projects, files = files + @files, report = coalesce(@report, report), source = coalesce(source, @source),
		active_at = now(), read_bytes = greatest(read_bytes, @read)
	where account_id = @account and import_id = @import and run = @run and state = 'running'`

// countPart runs the statements of a part and counts it, in one transaction. counts are the columns that grow by one.
func (r *run) countPart(ctx context.Context, queue func(*pgx.Batch, pgx.NamedArgs), counts ...string) error {
	args := pgx.NamedArgs{"projects": 0, "files": 0, "report": nil, "read": r.spool.progress(), "source": nil}
	if r.archive {
		args["source"] = protocol.ImportFromTurnstone
	}
	if r.noted { // a report may have many entries, and an export many parts
		report, err := pg.JSONText(&r.report)
		if err != nil {
			return err
		}
		args["report"] = report
	}
	maps.Copy(args, r.args)
	for _, column := range counts {
		args[column] = 1
	}
	err := r.db.InTx(ctx, r.account, func(ctx context.Context, tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, countPartSQL, args) // first: it fences the other statements
		if err != nil {
			return fmt.Errorf("counting a part of an import: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return errEnded
		}
		if queue == nil {
			return nil
		}
		batch := &pgx.Batch{}
		queue(batch, maps.Clone(args))
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("importing a part of an export: %w", err)
		}
		return nil
	})
	if err == nil {
		r.noted = false
	}
	return err
}

// projectsSQL finds what projects of an export are here: the account's own project, or what an import made of it.
const projectsSQL = `
	select distinct on (s.id) s.id, p.project_id
	from unnest(@ids::uuid[]) as s (id)
	left join lateral (select item_id from import_items where account_id = @account and kind = 'project' and source_id = s.id limit 1) i on true
	cross join lateral (
		(select project_id from projects where account_id = @account and project_id = s.id and deleted_at is null limit 1)
		union all
		(select project_id from projects where account_id = @account and project_id = i.item_id and deleted_at is null limit 1)) p
	order by s.id, p.project_id = s.id desc`

type knownProject struct{ Source, Here protocol.ProjectID }

// knownProjects returns those of the projects of an export that the account has.
func (r *run) knownProjects(ctx context.Context, ids ...protocol.ProjectID) ([]knownProject, error) {
	found, err := pg.Rows(ctx, r.db, r.account, pgx.RowToStructByPos[knownProject], projectsSQL, pgx.NamedArgs{"account": r.account, "ids": uuids(ids)})
	if err != nil {
		return nil, fmt.Errorf("finding projects of an export: %w", err)
	}
	return found, nil
}

func uuids[T ~[16]byte](ids []T) [][16]byte {
	all := make([][16]byte, len(ids))
	for i, id := range ids {
		all[i] = id
	}
	return all
}

const (
	insertProjectSQL = `
	insert into projects (account_id, project_id, name, archived_at, settings, settings_version, version, created_at, updated_at)
	values (@account, @item, @name, @archived, @settings, @settings_version, @version, @created, @updated)`
	// An item can be imported again once it was deleted.
	insertItemSQL = `
	insert into import_items (account_id, kind, source_id, item_id, import_id, name, hidden)
	values (@account, @kind, @source, @item, @import, @missing, @hidden)
	on conflict (account_id, kind, source_id) do update
	set item_id = excluded.item_id, import_id = excluded.import_id, name = excluded.name, hidden = excluded.hidden`
)

// project imports a project.
func (r *run) project(ctx context.Context, p *source.Project) error {
	if r.listed == nil {
		r.listed = map[protocol.ProjectID]bool{}
	}
	r.listed[p.ID] = true
	return r.part(func() error {
		known, err := r.knownProjects(ctx, p.ID)
		if err != nil {
			return err
		}
		if len(known) > 0 {
			r.note(protocol.ImportEntry{Reason: protocol.ImportAlreadyImported, Title: p.Name, Count: 1})
			return r.countPart(ctx, nil)
		}
		settings, err := pg.JSONText(&p.Settings)
		if err != nil {
			return err
		}
		id := p.ID.Renew()
		return r.countPart(ctx, func(batch *pgx.Batch, args pgx.NamedArgs) {
			maps.Copy(args, pgx.NamedArgs{
				"kind": "project", "source": p.ID, "item": id, "missing": nil, "hidden": false,
				"name": p.Name, "archived": nullTime(p.ArchivedAt), "settings": settings, "settings_version": p.Settings.Version,
				"version": p.Version, "created": p.CreatedAt, "updated": p.UpdatedAt,
			})
			batch.Queue(insertProjectSQL, args)
			batch.Queue(insertItemSQL, args)
			projects.Work{Kind: protocol.WorkProjectCreated}.Queue(batch, r.account, id)
		}, "projects")
	})
}

// instructionsSQL adds a version to a project that this import has created, or one that did not complete. A version that the
// account has written meanwhile stays.
const instructionsSQL = `
	with made as (
		insert into project_instructions (account_id, project_id, version, content, created_at)
		select p.account_id, p.project_id, @version, @content, @created
		from import_items i
		join imports m on m.account_id = i.account_id and m.import_id = i.import_id and m.state <> 'completed'
		join projects p on p.account_id = i.account_id and p.project_id = i.item_id
		where i.account_id = @account and i.kind = 'project' and i.source_id = @source
		on conflict do nothing
		returning project_id
	)
	update projects p set instructions_version = greatest(p.instructions_version, @version)
	from made where p.account_id = @account and p.project_id = made.project_id`

// instructions imports a version of the instructions of a project.
func (r *run) instructions(ctx context.Context, i *source.Instructions) error {
	return r.part(func() error {
		if !r.listed[i.ProjectID] {
			r.note(protocol.ImportEntry{Reason: protocol.ImportUnreadable, Detail: "Instructions of a project that was not imported.", Count: 1})
			return r.countPart(ctx, nil)
		}
		return r.countPart(ctx, func(batch *pgx.Batch, args pgx.NamedArgs) {
			maps.Copy(args, pgx.NamedArgs{"source": i.ProjectID, "version": i.Version, "content": i.Content, "created": i.CreatedAt})
			batch.Queue(instructionsSQL, args)
		})
	})
}

// accountInstructionsSQL gives the account the instructions of an export, unless it has some.
const accountInstructionsSQL = `
	insert into account_instructions (account_id, version, content, created_at)
	select @account, 1, @content, @created where not exists (select from account_instructions where account_id = @account)`

const accountInstructedSQL = `select exists (select from account_instructions where account_id = $1)`

// accountInstructions imports the instructions of the account.
func (r *run) accountInstructions(ctx context.Context, i *source.Instructions) error {
	return r.part(func() error {
		instructed, err := pg.Row(ctx, r.db, r.account, pgx.RowTo[bool], accountInstructedSQL, r.account)
		if err != nil {
			return fmt.Errorf("reading whether an account has instructions: %w", err)
		}
		if instructed {
			r.note(protocol.ImportEntry{Reason: protocol.ImportAccountKept, Detail: "The account keeps its own instructions.", Count: 1})
			return r.countPart(ctx, nil)
		}
		return r.countPart(ctx, func(batch *pgx.Batch, args pgx.NamedArgs) {
			batch.Queue(accounts.LockAccountSQL, r.account) // the account may write some now
			maps.Copy(args, pgx.NamedArgs{"content": i.Content, "created": i.CreatedAt})
			batch.Queue(accountInstructionsSQL, args)
		})
	})
}

const (
	promptsSQL = `
	select count(*), coalesce(bool_or(project_id is not distinct from @project::uuid and name_key = lower(@name)), false)
	from prompts where account_id = @account`
	// insertPromptSQL changes nothing if the account has written a prompt with the name meanwhile, or as many as it may have.
	insertPromptSQL = `
	insert into prompts (account_id, prompt_id, project_id, name, description, text, version, created_at, updated_at)
	select @account, @item, @project, @name, @description, @text, @version, @created, @updated
	where (select count(*) from prompts where account_id = @account) < @most
	on conflict do nothing`
)

// promptsBefore is what an account has before the import of a prompt.
type promptsBefore struct {
	Count int
	Named bool // one of them has the name
}

// prompt imports a prompt, unless the account has one with its name. If its project is not here, it belongs to the account.
func (r *run) prompt(ctx context.Context, p *source.Prompt) error {
	return r.part(func() error {
		var project *protocol.ProjectID
		if !p.ProjectID.IsZero() {
			known, err := r.knownProjects(ctx, p.ProjectID)
			if err != nil {
				return err
			}
			if len(known) > 0 {
				project = &known[0].Here
			} else {
				r.note(protocol.ImportEntry{Reason: protocol.ImportProjectAbsent, Title: p.Name, Detail: "The prompt belongs to the account instead.", Count: 1})
			}
		}
		prompt := pgx.NamedArgs{
			"account": r.account, "item": p.ID.Renew(), "project": project, "name": p.Name, "description": p.Description, "text": p.Text,
			"version": p.Version, "created": p.CreatedAt, "updated": p.UpdatedAt, "most": protocol.MaxPrompts,
		}
		before, err := pg.Row(ctx, r.db, r.account, pgx.RowToStructByPos[promptsBefore], promptsSQL, prompt)
		switch {
		case err != nil:
			return fmt.Errorf("finding the prompts of an account: %w", err)
		case before.Named:
			r.note(protocol.ImportEntry{Reason: protocol.ImportAlreadyImported, Title: p.Name, Detail: "The account has a prompt with this name.", Count: 1})
			return r.countPart(ctx, nil)
		case before.Count >= protocol.MaxPrompts:
			r.note(protocol.ImportEntry{Reason: protocol.ImportArchiveLimit, Title: p.Name, Detail: fmt.Sprintf("The account has %d prompts.", before.Count), Count: 1})
			return r.countPart(ctx, nil)
		}
		return r.countPart(ctx, func(batch *pgx.Batch, args pgx.NamedArgs) {
			batch.Queue(accounts.LockAccountSQL, r.account) // the account may write some now
			maps.Copy(args, prompt)
			batch.Queue(insertPromptSQL, args)
		})
	})
}

// sameFileSQL finds a file of the account with the content of one of an export: its own, or what an import made of it. One that
// was deleted from the library counts only for a file that was deleted in the export, too.
const sameFileSQL = `
	select exists (select from import_items i where i.account_id = @account and i.kind = 'file' and i.source_id = @source and i.item_id = f.file_id and i.import_id = @import)
	from (
		select item_id from import_items where account_id = @account and kind = 'file' and source_id = @source
		union all select @source::uuid) c (id)
	cross join lateral (
		select file_id, sha256, deleted_at from files where account_id = @account and file_id = c.id limit 1) f
	where (f.sha256 = @hash or @hash::bytea is null) and (f.deleted_at is null or @deleted)
	limit 1`

// file imports a file.
func (r *run) file(ctx context.Context, f *source.File) error {
	return r.part(func() error {
		same, err := pg.Rows(ctx, r.db, r.account, pgx.RowTo[bool], sameFileSQL,
			pgx.NamedArgs{"account": r.account, "import": r.id, "hash": f.SHA256, "deleted": f.Deleted, "source": f.ID})
		if err != nil {
			return fmt.Errorf("finding a file of an export: %w", err)
		}
		if len(same) > 0 {
			if !same[0] || r.archive { // otherwise this import has it from another message
				r.note(protocol.ImportEntry{Reason: protocol.ImportAlreadyImported, Title: f.Name, Count: 1})
			}
			return r.countPart(ctx, nil)
		}
		if f.Open == nil {
			reason, detail := protocol.ImportFilesAbsent, "The export does not have its content."
			switch {
			case f.OverLimit:
				reason, detail = protocol.ImportArchiveLimit, "The files of the archive have too many bytes together."
			case f.Listed:
				reason, detail = protocol.ImportFilesDamaged, "The archive has no content of the size that its list says."
			}
			return r.skipFile(ctx, f, reason, detail)
		}
		spec, err := specOf(r.account, f)
		if err != nil {
			return r.skipFile(ctx, f, protocol.ImportFilesRefused, err.Error())
		}
		return r.receiveFile(ctx, f, spec)
	})
}

// skipFile counts a file that is not imported.
func (r *run) skipFile(ctx context.Context, f *source.File, reason protocol.ImportReason, detail string) error {
	name, err := filetype.CleanName("", f.Name)
	if err != nil {
		name = ""
	}
	r.note(protocol.ImportEntry{Reason: reason, Title: name, Detail: detail, Count: 1})
	return r.countPart(ctx, func(batch *pgx.Batch, args pgx.NamedArgs) {
		maps.Copy(args, pgx.NamedArgs{"kind": "file", "source": f.ID, "item": nil, "missing": name, "hidden": false})
		batch.Queue(insertItemSQL, args)
	})
}

// specOf returns the session for a file, without its identifier and its lifetime. The error is what a client would get.
func specOf(account protocol.AccountID, f *source.File) (*uploadlog.Spec, error) {
	name, err := filetype.CleanName("filename", f.Name)
	if err != nil {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(f.MediaType)
	media = filetype.Canonical(media)
	if err != nil || !filetype.Accepts(media) {
		return nil, protocol.Errorf(protocol.CodeUnsupportedMedia, "Files of this type are not accepted.")
	}
	return &uploadlog.Spec{
		AccountID: account, Filename: name, MediaType: media, Size: f.Size, SHA256: f.SHA256, Purpose: protocol.UploadForLibrary,
		ObjectName: uploadlog.NewObjectName(),
	}, nil
}

// sessionID returns the identifier of the session in which the n-th attempt of an import receives a file: the same one in every run.
// It sorts where the file does in the export, and so does the file that the session creates.
func sessionID(of protocol.ImportID, file protocol.FileID, n int) protocol.UploadID {
	id := protocol.UploadID(of)
	if file[6]>>4 == of[6]>>4 && bytes.Compare(file[:8], of[:8]) <= 0 { // a UUIDv7 from before the import
		copy(id[:8], file[:8])
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", of, file, n))
	copy(id[8:], hash[:])
	id[8] = id[8]&0x3f | 0x80 // the variant of a UUID
	return id
}

// maxSessions limits the uploads for one file: those of earlier runs can have expired.
const maxSessions = 5

// receiveFile receives the content of a file and counts it.
func (r *run) receiveFile(ctx context.Context, f *source.File, spec *uploadlog.Spec) error {
	var upload *protocol.Upload
	for n := range maxSessions {
		spec.UploadID = sessionID(r.id, f.ID, n)
		var err error
		upload, err = r.receive(ctx, spec, f.Open)
		switch code := protocol.CodeOf(err); {
		case code == protocol.CodeTooLarge || code == protocol.CodeTooManyFiles:
			return r.skipFile(ctx, f, protocol.ImportFilesOverLimit, err.Error())
		case err != nil:
			return err
		}
		if upload.State != protocol.UploadExpired && (upload.State != protocol.UploadCancelled || upload.Failure != nil) {
			break
		}
	}
	detail := ""
	if upload.Failure != nil {
		detail = upload.Failure.Detail
	}
	switch {
	case upload.State == protocol.UploadReady && (f.SHA256 == nil || upload.SHA256 != nil && *upload.SHA256 == hex.EncodeToString(f.SHA256)):
		return r.addFile(ctx, f, *upload.FileID)
	case upload.State == protocol.UploadRejected:
		return r.skipFile(ctx, f, protocol.ImportFilesRefused, detail)
	case upload.State == protocol.UploadCancelled && upload.Failure != nil:
		return r.skipFile(ctx, f, protocol.ImportFilesDamaged, detail)
	}
	return r.skipFile(ctx, f, protocol.ImportFilesFailed, detail)
}

const (
	fileDatesSQL = `
	update files set version = @version, created_at = @created, updated_at = @updated where account_id = @account and file_id = @item`
	joinProjectSQL = `
	insert into project_files (account_id, project_id, file_id)
	select account_id, project_id, @item from projects where account_id = @account and project_id = @project and deleted_at is null
	on conflict do nothing`
)

// addFile counts a file whose session is ready, and adds it to its projects.
func (r *run) addFile(ctx context.Context, f *source.File, id protocol.FileID) error {
	known, err := r.knownProjects(ctx, f.ProjectIDs...)
	if err != nil {
		return err
	}
	return r.countPart(ctx, func(batch *pgx.Batch, args pgx.NamedArgs) {
		maps.Copy(args, pgx.NamedArgs{
			"kind": "file", "source": f.ID, "item": id, "missing": nil, "hidden": f.Deleted,
			"version": f.Version, "created": f.CreatedAt, "updated": f.UpdatedAt,
		})
		batch.Queue(fileDatesSQL, args)
		batch.Queue(insertItemSQL, args)
		for _, project := range known {
			joined := maps.Clone(args)
			joined["project"] = project.Here
			batch.Queue(joinProjectSQL, joined)
			projects.Work{Kind: protocol.WorkFileAdded, FileID: &id}.Queue(batch, r.account, project.Here)
		}
	}, "files")
}

const (
	hiddenSQL = `
	select item_id from import_items where account_id = @account and import_id = @import and hidden and item_id is not null limit 500`
	notHiddenSQL = `update import_items set hidden = false where account_id = @account and import_id = @import and item_id = @item`
)

// hideDeleted deletes from the library the files that were deleted from it in the export. Until the end of the import they are
// in it, because a deleted file without a message is erased.
func (s *Store) hideDeleted(ctx context.Context, job RunArgs) error {
	args := pgx.NamedArgs{"account": job.AccountID, "import": job.ImportID}
	for {
		hidden, err := pg.Rows(ctx, s.db, job.AccountID, pgx.RowTo[protocol.FileID], hiddenSQL, args)
		if err != nil {
			return fmt.Errorf("finding imported files that were deleted: %w", err)
		}
		if len(hidden) == 0 {
			return nil
		}
		for _, id := range hidden {
			err := s.files.Delete(ctx, job.AccountID, id, nil, nil)
			if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound { // the account has deleted it
				return err
			}
			args["item"] = id
			if _, err := s.db.Exec(ctx, job.AccountID, notHiddenSQL, args); err != nil {
				return fmt.Errorf("deleting an imported file: %w", err)
			}
			s.db.Log.Debug("an imported file was deleted from the library, as in the export", zap.Stringer("file", id))
		}
	}
}

// nullTime returns nil for the zero time.
func nullTime(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
