package files

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/jobs"
	"turnstone/persistence/objects"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

const (
	reapInterval = 30 * time.Second
	reapRows     = 100
)

type reapArgs struct{}

func (reapArgs) Kind() string { return "reap_uploads" }

// ReapJob returns the job that deletes the objects of uploads that have ended: the content in quarantine and, if there
// is no file, what was published before its commit failed.
func (s *Uploads) ReapJob() jobs.Job {
	return jobs.New(func(ctx context.Context, _ reapArgs) error { return s.Reap(ctx) }).Every(reapInterval, reapArgs{})
}

const (
	reapDueSQL = `select account_id, upload_id from uploads where reap_at <= now() order by reap_at limit $1`
	reapRowSQL = `select object_name, state from uploads where account_id = @account and upload_id = @upload and reap_at is not null`
	reapedSQL  = `update uploads set reap_at = null where account_id = @account and upload_id = @upload`
)

type ended struct {
	AccountID protocol.AccountID
	UploadID  protocol.UploadID
}

// Reap deletes the objects of all uploads that are due.
func (s *Uploads) Reap(ctx context.Context) error {
	for {
		rows, err := s.db.Engine.Query(ctx, reapDueSQL, reapRows)
		if err != nil {
			return fmt.Errorf("finding ended uploads: %w", pg.Classify(err))
		}
		due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ended])
		if err != nil {
			return fmt.Errorf("finding ended uploads: %w", pg.Classify(err))
		}
		for _, one := range due {
			if err := s.reap(ctx, one); err != nil {
				return fmt.Errorf("deleting the objects of an upload: %w", err)
			}
		}
		if len(due) < reapRows {
			return nil
		}
	}
}

func (s *Uploads) reap(ctx context.Context, one ended) error {
	type row struct {
		ObjectName string
		State      protocol.UploadState
	}
	args := pgx.NamedArgs{"account": one.AccountID, "upload": one.UploadID}
	session, err := pg.Row(ctx, s.db, one.AccountID, pgx.RowToStructByPos[row], reapRowSQL, args)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil // another node was faster
	}
	if err != nil {
		return err
	}
	if _, err := objects.DeleteAll(ctx, s.objects, uploadlog.QuarantinePrefix(one.AccountID, session.ObjectName)); err != nil {
		return err
	}
	if session.State != protocol.UploadReady {
		if err := s.objects.Delete(ctx, uploadlog.ObjectKey(one.AccountID, session.ObjectName)); err != nil {
			return err
		}
	}
	_, err = s.db.Exec(ctx, one.AccountID, reapedSQL, args)
	return err
}

const expireUploadsSQL = `
	delete from uploads u using (
		select account_id, upload_id from uploads where finished_at < now() - interval '7 days' and reap_at is null limit $1) x
	where u.account_id = x.account_id and u.upload_id = x.upload_id`

// Expire deletes the uploads that ended a week ago.
func (s *Uploads) Expire(ctx context.Context) error {
	return s.db.DeleteExpired(ctx, expireUploadsSQL)
}
