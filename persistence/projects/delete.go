package projects

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// The audit events of projects. Their detail holds the identifier of the project.
const (
	EventProjectDeleted  audit.SecurityEvent = "project.deleted"
	EventProjectRestored audit.SecurityEvent = "project.restored"
	EventProjectPurged   audit.SecurityEvent = "project.purged"
)

// Retention is the time from the deletion of a project to its purge.
const Retention = "30 days"

// deleteAttempts limits how often one deletion cancels turns. It cancels again if another turn has become live before the
// project was deleted.
const deleteAttempts = 3

// Deletion is a request to delete a project.
type Deletion struct {
	Change
	// Confirm decides whether the account has confirmed what the deletion hides; its error ends the deletion. It must not
	// block, because the project is locked. nil: confirmed.
	Confirm func(*Content) error
	By      audit.Requester
}

// Content is what a deletion of a project hides, by kind.
type Content struct {
	Version    int64
	WillDelete map[string]int
}

// maxLiveTurns limits the live turns that one deletion reads. The limit of live turns per account is far lower.
const maxLiveTurns = 100

// liveTurnsSQL finds the live turns of a project, and reports whether their cancel is stored. There are few live turns in
// an account.
const liveTurnsSQL = `
	select t.turn_id, exists (
		select from turn_records r where r.account_id = t.account_id and r.turn_id = t.turn_id and r.kind = '` + turnlog.RecordCancel + `')
	from turns t
	cross join lateral (
		select project_id from conversations where account_id = t.account_id and conversation_id = t.conversation_id limit 1) c
	where t.account_id = $1 and t.` + open.Turns + ` and c.project_id = $2
	limit $3`

// countSQL counts the prompts of a project, and its live research tasks.
const countSQL = `
	select (select count(*) from prompts where account_id = $1 and project_id = $2), count(*)
	from research_tasks t join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id
	where t.account_id = $1 and c.account_id = $1 and c.project_id = $2 and t.` + open.Tasks

// hideTasks makes nodes stop the research tasks of a project, and runAgain makes them continue.
const (
	tasksOfProject = `
		from conversations c
		where t.account_id = @account and c.account_id = @account and c.conversation_id = t.conversation_id and c.project_id = @project
			and t.` + open.Tasks + `)`
	hideTasks = `
	with tasks as (` + open.HideTasks + tasksOfProject
	runAgain = `
	with tasks as (update research_tasks t set hidden = false` + tasksOfProject
)

const deleteSQL = hideTasks + `
	update projects
	set deleted_at = now(), purge_at = now() + '` + Retention + `'::interval, version = version + 1, updated_at = now()
	where account_id = @account and project_id = @project`

// DeleteWithLiveTurns is DeleteProject for a project with live turns, which cancel stores as cancelled first. The error is
// protocol.CodeUnavailable if turns become live faster than they are cancelled. A crash in between leaves a project whose turns
// were cancelled, and the client repeats the request.
func (s *Store) DeleteWithLiveTurns(
	ctx context.Context, account protocol.AccountID, deletion *Deletion, cancel func(context.Context, protocol.TurnID) error,
) (*protocol.Project, error) {
	for range deleteAttempts {
		project, live, err := s.DeleteProject(ctx, account, deletion)
		if err != nil || len(live) == 0 {
			return project, err
		}
		deletion.Confirm = nil // what follows belongs to the confirmed deletion
		for _, turn := range live {
			if err := cancel(ctx, turn); err != nil {
				return nil, err
			}
		}
	}
	return nil, protocol.Errorf(protocol.CodeUnavailable, "The answers in progress were canceled, but the project is not deleted yet. Try again.")
}

// DeleteProject hides a project with its conversations, until it is restored or purged. Live turns are cancelled before:
// if the cancel of one is not stored, nothing happens, and the live turns to cancel are returned. A start of a turn locks
// the account too, so it precedes the deletion, or finds the project deleted.
func (s *Store) DeleteProject(ctx context.Context, account protocol.AccountID, deletion *Deletion) (project *protocol.Project, live []protocol.TurnID, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		live = nil
		if _, err := tx.Exec(ctx, accounts.LockAccountSQL, account); err != nil {
			return fmt.Errorf("locking an account: %w", err)
		}
		if project, err = Lock(ctx, tx, account, deletion.ProjectID); err != nil {
			return err
		}
		if err := deletion.checkVersion(project.Version, project); err != nil {
			return err
		}
		if _, legal := protocol.NextProjectState(project.State, protocol.ProjectDelete); !legal {
			return refuse(project)
		}
		turns, err := readLiveTurns(ctx, tx, account, deletion.ProjectID)
		if err != nil {
			return err
		}
		if deletion.Confirm != nil {
			var prompts, tasks int
			if err := tx.QueryRow(ctx, countSQL, account, deletion.ProjectID).Scan(&prompts, &tasks); err != nil {
				return fmt.Errorf("counting what is in a project: %w", err)
			}
			content := &Content{Version: project.Version, WillDelete: map[string]int{
				"projects": 1, "conversations": int(project.ConversationCount), "files": int(project.FileCount), "prompts": prompts, "live_turns": len(turns), "live_tasks": tasks,
			}}
			instructions, err := readInstructions(ctx, tx, pgx.NamedArgs{"account": account, "project": deletion.ProjectID})
			if err != nil {
				return err
			}
			if content.WillDelete["instructions"] = 0; instructions.Content != "" {
				content.WillDelete["instructions"] = 1
			}
			if err := deletion.Confirm(content); err != nil {
				return err
			}
		}
		for _, turn := range turns {
			if !turn.Cancelled {
				live = append(live, turn.TurnID)
			}
		}
		if len(live) > 0 {
			return nil
		}
		edit := &edit{sql: deleteSQL, args: pgx.NamedArgs{}, kind: protocol.WorkProjectDeleted}
		project, err = s.changeVisibility(ctx, tx, account, &deletion.Change, edit, EventProjectDeleted, deletion.By, project.Version+1)
		return err
	})
	return project, live, err
}

type liveTurn struct {
	TurnID    protocol.TurnID
	Cancelled bool
}

func readLiveTurns(ctx context.Context, tx *pg.Tx, account protocol.AccountID, project protocol.ProjectID) ([]liveTurn, error) {
	rows, err := tx.Query(ctx, liveTurnsSQL, account, project, maxLiveTurns)
	if err != nil {
		return nil, fmt.Errorf("reading the live turns of a project: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[liveTurn])
}

const restoreSQL = runAgain + `
	update projects set deleted_at = null, purge_at = null, version = version + 1, updated_at = now()
	where account_id = @account and project_id = @project`

// purgeDueSQL reports whether a deleted project may already be incomplete.
const purgeDueSQL = `
	select coalesce(purge_at <= now(), false) from projects where account_id = $1 and project_id = $2`

// RestoreProject makes a deleted project visible again, with everything in it. It is archived if it was archived when it
// was deleted. If it was not deleted, or its purge is due, the error is a conflict with the project.
func (s *Store) RestoreProject(ctx context.Context, account protocol.AccountID, change *Change, by audit.Requester) (project *protocol.Project, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if project, err = Lock(ctx, tx, account, change.ProjectID); err != nil {
			return err
		}
		if err := change.checkVersion(project.Version, project); err != nil {
			return err
		}
		if _, legal := protocol.NextProjectState(project.State, protocol.ProjectRestore); !legal {
			return protocol.Conflict(protocol.CodeConflict, project, "The project is not deleted.")
		}
		var due bool
		if err := tx.QueryRow(ctx, purgeDueSQL, account, change.ProjectID).Scan(&due); err != nil {
			return fmt.Errorf("reading a project: %w", err)
		}
		if due {
			return protocol.Conflict(protocol.CodeConflict, project, "The project is being erased and cannot be restored any more.")
		}
		edit := &edit{sql: restoreSQL, args: pgx.NamedArgs{}, kind: protocol.WorkProjectRestored}
		project, err = s.changeVisibility(ctx, tx, account, change, edit, EventProjectRestored, by, project.Version+1)
		return err
	})
	return project, err
}

// changeVisibility deletes or restores a project, appends the audit entry, and moves its newest conversations to the
// indexes where they belong. A job moves the others.
func (s *Store) changeVisibility(ctx context.Context, tx *pg.Tx, account protocol.AccountID, change *Change, edit *edit,
	event audit.SecurityEvent, by audit.Requester, version int64,
) (*protocol.Project, error) {
	project, err := s.apply(ctx, tx, account, change, edit, version)
	if err != nil {
		return nil, err
	}
	if err := appendAudit(ctx, tx, account, change, event, by); err != nil {
		return nil, err
	}
	done, err := moveInIndexes(ctx, tx, account, project, movedAtOnce)
	if err != nil || done {
		return project, err
	}
	return project, s.queue.Insert(ctx, tx, ReindexArgs{AccountID: account, ProjectID: change.ProjectID})
}

func appendAudit(ctx context.Context, tx *pg.Tx, account protocol.AccountID, change *Change, event audit.SecurityEvent, by audit.Requester) error {
	detail, err := json.Marshal(map[string]protocol.ProjectID{"project_id": change.ProjectID})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, audit.AppendAuditSQL, account, string(event), change.SessionID, by.RequestID, by.Address, detail); err != nil {
		return fmt.Errorf("appending to the audit: %w", err)
	}
	return nil
}
