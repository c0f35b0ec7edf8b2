package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

const (
	// appendSQL is the fence: owner, epoch and next sequence of the upload must be those of the batch.
	appendSQL = `
	update uploads set state = @state, received_bytes = @received, content = @content, failure = @failure, file_id = @file,
		owner = case when @rests then null else owner end, next_sequence = @last + 1,
		finished_at = case when @ended then @at::timestamptz end, reap_at = case when @ended then @at::timestamptz + @reap::interval end
	where account_id = @account and upload_id = @upload and owner = @owner and owner_epoch = @epoch and next_sequence = @first and ` + open.Uploads + `
	returning size, purpose, project_id, session_id`
	storedSQL = `select owner_epoch = @epoch and next_sequence > @last from uploads where account_id = @account and upload_id = @upload`

	endedSQL = `
	update file_totals set reserved = reserved - @size, sessions = sessions - 1, bytes = bytes + @added, files = files + @count where account_id = @account`
	// insertFileSQL locks the conversation that the upload is for. If it was temporary and has ended, the file ends too.
	insertFileSQL = `
	with target as (
		select c.temporary and c.deleted_at is not null as ended
		from conversations c
		join uploads u on u.account_id = c.account_id and u.conversation_id = c.conversation_id
		where c.account_id = @account and u.account_id = @account and u.upload_id = @upload and u.purpose = 'attachment'
		for share of c)
	insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at,
		purpose, uploaded_for, deleted_at)
	select account_id, file_id, filename, @media, @kind, size, @hash, object_name, @engine, @at::timestamptz, @at, @at,
		purpose, case when purpose = 'attachment' then conversation_id end, (select @at::timestamptz from target where ended)
	from uploads where account_id = @account and upload_id = @upload`
	addToProjectSQL = `
	insert into project_files (account_id, project_id, file_id)
	select account_id, project_id, @file from projects where account_id = @account and project_id = @project and state = 'active'`
)

// AppendUpload stores a batch, and the file that it creates, in one transaction. A repeat of a stored batch succeeds
// without an effect. The error is ownership.ErrFenced if another owner or epoch has the upload.
func (s *Uploads) AppendUpload(ctx context.Context, b *uploadlog.Append) error {
	args, err := appendArgs(b)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, b.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		var row struct {
			size    int64
			purpose protocol.UploadPurpose
			project *protocol.ProjectID
			session *protocol.SessionID
		}
		err := tx.QueryRow(ctx, appendSQL, args).Scan(&row.size, &row.purpose, &row.project, &row.session)
		if errors.Is(err, pgx.ErrNoRows) {
			return pg.Fenced(ctx, tx, storedSQL, args)
		}
		if err != nil {
			return fmt.Errorf("storing a batch of an upload: %w", err)
		}
		batch := &pgx.Batch{}
		batch.Queue(insertEventsSQL, args)
		if b.State.Terminal() {
			args["size"] = row.size
			batch.Queue(endedSQL, args)
		}
		if b.File != nil {
			batch.Queue(insertFileSQL, args)
			batch.Queue(insertTextSQL, args)
		}
		if b.Failure != nil && b.Failure.Code == protocol.UploadMalware {
			queueAudit(batch, b, row.session)
		}
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("storing a batch of an upload: %w", err)
		}
		if b.File != nil && row.project != nil && row.purpose == protocol.UploadForProject {
			args["project"] = row.project
			work := projects.Work{Kind: protocol.WorkFileAdded, SessionID: row.session, FileID: &b.File.FileID}
			if err := join(ctx, tx, args, b.AccountID, *row.project, work); err != nil {
				return err
			}
		}
		if b.File != nil && firstTextState(b.File.Kind) == protocol.TextPending {
			return s.enqueue(ctx, tx, ExtractArgs{b.AccountID, b.File.FileID}, args)
		}
		return nil
	})
	if errors.Is(err, pg.ErrStored) {
		return nil
	}
	return err
}

// join makes a new file one of the files of its project, unless the project was archived or deleted in the
// meantime: then it is a file of the library only.
func join(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, account protocol.AccountID, project protocol.ProjectID, work projects.Work) error {
	tag, err := tx.Exec(ctx, addToProjectSQL, args)
	if err == nil && tag.RowsAffected() == 1 {
		batch := &pgx.Batch{}
		work.Queue(batch, account, project)
		err = tx.Run(ctx, batch)
	}
	if err != nil {
		return fmt.Errorf("adding a file to the project of its upload: %w", err)
	}
	return nil
}

func appendArgs(b *uploadlog.Append) (pgx.NamedArgs, error) {
	content, err := jsonText(b.Content)
	if err != nil {
		return nil, err
	}
	failure, err := jsonText(b.Failure)
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{
		"account": b.AccountID, "upload": b.UploadID, "owner": b.Owner, "epoch": b.Epoch, "first": b.First, "last": b.Last, "frames": b.Frames,
		"state": string(b.State), "received": b.Received, "content": content, "failure": failure, "rests": b.Rests(), "ended": b.State.Terminal(),
		"at": b.At, "reap": reapAfter(b.Failure), "file": nil, "added": int64(0), "count": int64(0),
	}
	if f := b.File; f != nil {
		args["file"], args["kind"], args["engine"] = f.FileID, string(f.Kind), f.Engine
		args["text_state"] = string(firstTextState(f.Kind))
		args["media"], args["hash"], args["added"], args["count"] = b.Content.MediaType, b.Content.SHA256[:], b.Content.Size, int64(1)
	}
	return args, nil
}

// queueAudit adds the entry about a file with malware.
func queueAudit(batch *pgx.Batch, b *uploadlog.Append, session *protocol.SessionID) {
	detail, err := json.Marshal(map[string]any{"upload_id": b.UploadID})
	if err != nil {
		detail = []byte("{}")
	}
	batch.Queue(audit.AppendAuditSQL, b.AccountID, string(audit.EventFileInfected), session, "", "", detail)
}
