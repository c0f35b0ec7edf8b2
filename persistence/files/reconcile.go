package files

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/audit"
	"turnstone/persistence/jobs"
	"turnstone/persistence/objects"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

const (
	reconcileInterval = 24 * time.Hour
	reconcileTimeout  = 2 * time.Hour
	// orphanAge is the age from which an object without a row has no upload that could still create the row: longer than
	// malware stays in quarantine.
	orphanAge = quarantineTime + 24*time.Hour
)

// Differences are what Reconcile has found.
type Differences struct {
	Orphans int // objects without a row, which it has deleted
	Missing int // files without an object, each of which is in the audit of its account
}

type reconcileArgs struct{}

func (reconcileArgs) Kind() string { return "reconcile_files" }

// ReconcileJob returns the job that compares rows and objects once a day, and logs the differences.
func (s *Store) ReconcileJob() jobs.Job {
	return jobs.NewLong(reconcileTimeout, func(ctx context.Context, _ reconcileArgs) error {
		found, err := s.Reconcile(ctx, time.Now())
		if err == nil {
			s.db.Log.Info("files compared with the object store", zap.Int("orphans", found.Orphans), zap.Int("missing", found.Missing))
		}
		return err
	}).Every(reconcileInterval, reconcileArgs{})
}

// Reconcile compares the rows of files with the objects, in pages. now is the time from which the age of an object counts.
func (s *Store) Reconcile(ctx context.Context, now time.Time) (found Differences, err error) {
	for _, prefix := range []string{"q/", "f/"} {
		if err := s.deleteOrphans(ctx, prefix, now.Add(-orphanAge), &found); err != nil {
			return found, fmt.Errorf("comparing objects with rows: %w", err)
		}
	}
	if err := s.findMissing(ctx, &found); err != nil {
		return found, fmt.Errorf("comparing rows with objects: %w", err)
	}
	return found, nil
}

// knownNamesSQL returns which of the names of objects a file or an open upload has.
const knownNamesSQL = `
	select object_name from files where account_id = @account and object_name = any(@names)
	union all
	select object_name from uploads where account_id = @account and object_name = any(@names) and (finished_at is null or reap_at is not null)`

// deleteOrphans deletes the objects below a prefix that are older than a time and have no row.
func (s *Store) deleteOrphans(ctx context.Context, prefix string, before time.Time, found *Differences) error {
	for after := ""; ; {
		page, err := s.objects.List(ctx, prefix, after, objects.MaxList)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Key
		byAccount := map[protocol.AccountID]map[string][]string{} // keys by the name of the object
		for _, object := range page {
			account, name, ok := parseKey(strings.TrimPrefix(object.Key, prefix))
			if !ok || object.ModifiedAt.After(before) {
				continue
			}
			if byAccount[account] == nil {
				byAccount[account] = map[string][]string{}
			}
			byAccount[account][name] = append(byAccount[account][name], object.Key)
		}
		for account, names := range byAccount {
			if err := s.deleteUnknown(ctx, account, names, found); err != nil {
				return err
			}
		}
	}
}

// parseKey splits a key without its prefix into the account and the name of the object.
func parseKey(key string) (account protocol.AccountID, name string, ok bool) {
	owner, rest, found := strings.Cut(key, "/")
	name, _, _ = strings.Cut(rest, "/")
	return account, name, found && account.UnmarshalText([]byte(owner)) == nil
}

func (s *Store) deleteUnknown(ctx context.Context, account protocol.AccountID, names map[string][]string, found *Differences) error {
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	known, err := pg.Rows(ctx, s.db, account, pgx.RowTo[string], knownNamesSQL, pgx.NamedArgs{"account": account, "names": list})
	if err != nil {
		return err
	}
	for _, name := range known {
		delete(names, name)
	}
	for _, keys := range names {
		for _, key := range keys {
			if err := s.objects.Delete(ctx, key); err != nil {
				return err
			}
			found.Orphans++
		}
	}
	return nil
}

const (
	allFilesSQL = `
	select account_id, file_id from files where (account_id, file_id) > ($1, $2) and deleted_at is null order by account_id, file_id limit $3`
	missingSQL = `select object_name from files where account_id = @account and file_id = @file and deleted_at is null`
)

// findMissing looks up the object of every file.
func (s *Store) findMissing(ctx context.Context, found *Differences) error {
	var last PurgeArgs
	for {
		rows, err := s.db.Engine.Query(ctx, allFilesSQL, last.AccountID, last.FileID, objects.MaxList)
		if err != nil {
			return pg.Classify(err)
		}
		page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PurgeArgs])
		if err != nil || len(page) == 0 {
			return pg.Classify(err)
		}
		last = page[len(page)-1]
		for _, file := range page {
			if err := s.checkObject(ctx, file, found); err != nil {
				return err
			}
		}
	}
}

func (s *Store) checkObject(ctx context.Context, file PurgeArgs, found *Differences) error {
	name, err := pg.Row(ctx, s.db, file.AccountID, pgx.RowTo[string], missingSQL, pgx.NamedArgs{"account": file.AccountID, "file": file.FileID})
	if err == nil {
		_, err = s.objects.Stat(ctx, uploadlog.ObjectKey(file.AccountID, name))
	} else if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil // it was deleted in the meantime
	}
	if protocol.CodeOf(err) != protocol.CodeNotFound {
		return err
	}
	found.Missing++
	s.db.Log.Error("the content of a file is missing", zap.Stringer("file", file.FileID))
	return audit.New(s.db).Record(ctx, file.AccountID, audit.EventObjectMissing, nil, map[string]any{"file_id": file.FileID}, audit.Requester{})
}
