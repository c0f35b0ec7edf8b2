package imports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/persistence/conversations"
	"turnstone/persistence/imports/source"
	"turnstone/persistence/jobs"
	"turnstone/persistence/objects"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// RunArgs is the job that runs an import, or deletes the upload of one that has ended.
type RunArgs struct {
	AccountID protocol.AccountID `json:"account_id"`
	ImportID  protocol.ImportID  `json:"import_id"`
}

// Kind returns the name of the job.
func (RunArgs) Kind() string { return "run_import" }

// InsertOpts runs imports in a queue of their own, because they would delay other jobs.
func (RunArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: jobs.LongQueue, MaxAttempts: maxAttempts}
}

const (
	maxAttempts = 1000
	runTimeout  = time.Hour // a node runs few imports at a time, and others wait
	// abandonedAfter is the time without activity after which a run or an upload has certainly ended with its node. A run whose node
	// has been declared dead does not wait for it.
	abandonedAfter = time.Minute
)

// RunJob returns the job that runs imports on a node, with the function that receives their files.
func (s *Store) RunJob(node protocol.NodeID, receive ReceiveFile) jobs.Job {
	on := s.on(node)
	return jobs.NewLong(runTimeout, func(ctx context.Context, args RunArgs) error { return on.Continue(ctx, args, receive) })
}

// on returns the store for the runs of a node, or of none if node is zero.
func (s *Store) on(node protocol.NodeID) *Store {
	on := *s
	if node != (protocol.NodeID{}) {
		on.node = &node
	}
	return &on
}

// maxLostRuns is the number of runs that may end with their processes. The content of the upload is probably the cause, and
// must not end the next node too.
const maxLostRuns = 2

// claimSQL starts a run, unless another one is active. A node that was declared dead starts none: it would count as one that has ended.
var claimSQL = `
	update imports set state = 'running', run = run + 1, active_at = now(), node_id = @node,
		lost_runs = lost_runs + case when state = 'running' and active_at > '-infinity' then 1 else 0 end
	where account_id = @account and import_id = @import
	  and (state = 'queued' or state = 'running' and (active_at < now() - @abandoned::interval
	       or node_id is not null and not ` + pg.NodeRuns("imports.node_id") + `))
	  and (@node::uuid is null or ` + pg.NodeRuns("@node") + `)
	returning run, size, handled, parts, report, unfinished_id, lost_runs`

const (
	endedSQL = `
	select unfinished_id from imports
	where account_id = @account and import_id = @import and ` + open.EndedImports + ` and stored
	for update`
	noUnfinishedSQL = `update imports set unfinished_id = null where account_id = @account and import_id = @import`
)

// run is one attempt to read an upload from its start to its end.
type run struct {
	*Store
	account protocol.AccountID
	id      protocol.ImportID
	spool   *spool
	receive ReceiveFile
	report  protocol.ImportReport
	noted   bool  // report has entries that are not stored
	handled int64 // conversations that an earlier run has handled
	seen    int64 // conversations of this run
	lost    int   // earlier runs that ended with their processes
	args    pgx.NamedArgs

	handledParts int64 // projects, instructions, prompts and files that an earlier run has handled
	parts        int64 // of this run
	archive      bool  // the file is an archive of this service
	// listed has the projects that the export has; also those that the account had already.
	listed map[protocol.ProjectID]bool
}

// Continue runs an import that no other run works on, to its end. It does nothing if there is none, except that it deletes
// the upload of one that has ended. receive receives the files of the export.
func (s *Store) Continue(ctx context.Context, args RunArgs, receive ReceiveFile) error {
	r, err := s.claim(ctx, args)
	if err != nil {
		return err
	}
	if r == nil {
		return s.deleteIfEnded(ctx, args)
	}
	r.receive = receive
	if r.lost >= maxLostRuns {
		err = r.end(ctx, "The service was interrupted twice while it read the file, and has given up. What was imported before stays.")
	} else if err = r.read(ctx); err == nil {
		err = r.end(ctx, "")
	} else if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = r.end(ctx, fmt.Sprintf("Reading the file took longer than %.0f minutes. What was imported before stays.", runTimeout.Minutes()))
	}
	switch {
	case errors.Is(err, errEnded):
		return s.deleteIfEnded(ctx, args)
	case err != nil:
		r.release(ctx)
		return fmt.Errorf("importing: %w", err)
	}
	return s.deleteIfEnded(ctx, args) // after a failure, a conversation may be unfinished
}

// deleteIfEnded deletes the upload of an import that has ended, and the conversation that it was writing.
func (s *Store) deleteIfEnded(ctx context.Context, job RunArgs) error {
	ended := false
	err := s.db.InTx(ctx, job.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		args := pgx.NamedArgs{"account": job.AccountID, "import": job.ImportID}
		var unfinished *protocol.ConversationID
		err := tx.QueryRow(ctx, endedSQL, args).Scan(&unfinished)
		if ended = err == nil; errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || unfinished == nil {
			return err
		}
		if _, err := tx.Exec(ctx, noUnfinishedSQL, args); err != nil {
			return err
		}
		return s.queue.Insert(ctx, tx, conversations.PurgeConversationArgs{AccountID: job.AccountID, ConversationID: *unfinished})
	})
	if err != nil || !ended {
		return err
	}
	if err := s.hideDeleted(ctx, job); err != nil {
		return err
	}
	return s.deleteUpload(ctx, job.AccountID, job.ImportID)
}

// claim returns nil if there is nothing to run.
func (s *Store) claim(ctx context.Context, args RunArgs) (*run, error) {
	r := &run{Store: s, account: args.AccountID, id: args.ImportID, spool: &spool{ctx: ctx, store: s.objects, account: args.AccountID, id: args.ImportID}}
	found := false
	err := s.db.InTx(ctx, args.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		var number int
		var report []byte
		var unfinished *protocol.ConversationID
		err := tx.QueryRow(ctx, claimSQL, pgx.NamedArgs{"account": args.AccountID, "import": args.ImportID, "abandoned": abandonedAfter, "node": s.node}).
			Scan(&number, &r.spool.size, &r.handled, &r.handledParts, &report, &unfinished, &r.lost)
		if found = err == nil; errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		r.args = pgx.NamedArgs{"account": args.AccountID, "import": args.ImportID, "run": number}
		if err := json.Unmarshal(report, &r.report); err != nil {
			return fmt.Errorf("reading the report of an import: %w", err)
		}
		if unfinished != nil { // a run that was interrupted has written a part of it
			return s.queue.Insert(ctx, tx, conversations.PurgeConversationArgs{AccountID: args.AccountID, ConversationID: *unfinished})
		}
		return nil
	})
	if err != nil || !found {
		return nil, err
	}
	return r, nil
}

// read reads the upload, and shows activity meanwhile.
func (r *run) read(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var active sync.WaitGroup
	active.Go(func() { r.showActivity(ctx, cancel) })
	r.spool.ctx = ctx
	err := source.Read(ctx, r.spool, r.spool.size, time.Now(), source.Handler{
		Conversation:        func(c *source.Conversation) error { return r.conversation(ctx, c) },
		Archive:             func() error { r.archive = true; return nil },
		Project:             func(p *source.Project) error { return r.project(ctx, p) },
		Instructions:        func(i *source.Instructions) error { return r.instructions(ctx, i) },
		File:                func(f *source.File) error { return r.file(ctx, f) },
		AccountInstructions: func(i *source.Instructions) error { return r.accountInstructions(ctx, i) },
		Prompt:              func(p *source.Prompt) error { return r.prompt(ctx, p) },
		Artifact:            func(v *source.Artifact) error { return r.artifact(ctx, v) },
		Problem: func(reason protocol.ImportReason, name, detail string, count int) error {
			if r.seen >= r.handled && r.parts >= r.handledParts { // an earlier run has noted it otherwise
				r.note(protocol.ImportEntry{Reason: reason, Title: name, Detail: detail, Count: count})
			}
			return nil
		},
	})
	if cause := context.Cause(ctx); errors.Is(cause, errEnded) {
		err = errEnded
	}
	cancel(nil)
	active.Wait()
	return err
}

const activeSQL = `
	update imports set active_at = now(), read_bytes = greatest(read_bytes, @read)
	where account_id = @account and import_id = @import and run = @run and state = 'running'`

// showActivity keeps other runs away, and ends this one if the import was cancelled or another run has started.
func (r *run) showActivity(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(activeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		args := pgx.NamedArgs{"read": r.spool.progress()}
		maps.Copy(args, r.args)
		if changed, err := r.db.Exec(ctx, r.account, activeSQL, args); err == nil && changed == 0 {
			cancel(errEnded)
		}
	}
}

const endSQL = `
	update imports
	set state = @state, failure = @failure, report = @report, source = coalesce(source, @source), read_bytes = size, finished_at = now()
	where account_id = @account and import_id = @import and run = @run and state = 'running'`

// end ends the import: as failed if there is a failure, or if the file has no conversation at all and is not an archive of this
// service.
func (r *run) end(ctx context.Context, failure string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pg.RequestTimeout) // the time of the run may be over
	defer cancel()
	report, err := pg.JSONText(&r.report)
	if err != nil {
		return err
	}
	args := pgx.NamedArgs{
		"account": r.account, "import": r.id, "run": r.args["run"], "report": report,
		"state": protocol.ImportCompleted, "failure": nil, "source": nil,
	}
	if r.archive {
		args["source"] = protocol.ImportFromTurnstone
	} else if failure == "" && r.seen == 0 && r.parts == 0 {
		failure = "The file has no conversations that can be imported."
	}
	if failure != "" {
		args["state"], args["failure"] = protocol.ImportFailed, failure
	}
	changed, err := r.db.Exec(ctx, r.account, endSQL, args)
	if err == nil && changed == 0 {
		return errEnded
	}
	return err
}

const releaseSQL = `
	update imports set active_at = '-infinity'
	where account_id = @account and import_id = @import and run = @run and state = 'running'`

// release lets the next attempt start at once.
func (r *run) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pg.RequestTimeout)
	defer cancel()
	_, _ = r.db.Exec(ctx, r.account, releaseSQL, r.args) // otherwise it starts when abandonedAfter is over
}

const uploadDeletedSQL = `
	update imports set stored = false
	where account_id = @account and import_id = @import and ` + open.EndedImports

// deleteUpload deletes the objects of an import that has ended.
func (s *Store) deleteUpload(ctx context.Context, account protocol.AccountID, id protocol.ImportID) error {
	if _, err := objects.DeleteAll(ctx, s.objects, Prefix(account)+id.String()+"/"); err != nil {
		return fmt.Errorf("deleting an upload: %w", err)
	}
	_, err := s.db.Exec(ctx, account, uploadDeletedSQL, pgx.NamedArgs{"account": account, "import": id})
	return err
}
