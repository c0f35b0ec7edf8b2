package projects

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/idempotency"
	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Store stores projects. Its methods may be called from any goroutine.
type Store struct {
	db    *pg.DB
	queue *jobs.Queue
}

// New returns a store that enqueues its jobs in queue.
func New(db *pg.DB, queue *jobs.Queue) *Store { return &Store{db: db, queue: queue} }

// Columns are the columns of protocol.Project, from projects p.
const Columns = `
	p.project_id, p.name, p.state, p.archived_at, p.deleted_at, p.purge_at, p.conversation_count, p.file_count,
	p.version, p.created_at, p.updated_at`

const selectProjectSQL = `
	select ` + Columns + ` from projects p where p.account_id = @account and p.project_id = @project`

// Read reads a project of any state.
func Read(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ProjectID) (*protocol.Project, error) {
	return one(ctx, tx, selectProjectSQL, account, id)
}

// Lock locks the row of a project, so that it does not change its state, and reads it. The number of its conversations
// changes under the same lock. The error is protocol.CodeNotFound if the account has no such project.
func Lock(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ProjectID) (*protocol.Project, error) {
	return one(ctx, tx, selectProjectSQL+` for no key update`, account, id)
}

// LockActive locks the row of a project that gets a conversation; see Lock. If the project is archived, the error is a
// conflict with the project. A deleted project is not found.
func LockActive(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ProjectID) (*protocol.Project, error) {
	project, err := Lock(ctx, tx, account, id)
	if err != nil {
		return nil, err
	}
	return project, CheckActive(project)
}

// CheckActive returns an error unless a project takes conversations and turns: not found for a deleted project, and a
// conflict with the project if it is archived.
func CheckActive(project *protocol.Project) error {
	switch project.State {
	case protocol.ProjectActive:
		return nil
	case protocol.ProjectDeleted:
		return pg.NotFound()
	default:
		return protocol.Conflict(protocol.CodeConflict, project, "The project is archived, so it is read-only.")
	}
}

func one(ctx context.Context, tx *pg.Tx, sql string, account protocol.AccountID, id protocol.ProjectID) (*protocol.Project, error) {
	rows, err := tx.Query(ctx, sql, pgx.NamedArgs{"account": account, "project": id})
	if err != nil {
		return nil, fmt.Errorf("reading a project: %w", err)
	}
	project, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Project])
	if err != nil {
		return nil, fmt.Errorf("reading a project: %w", err)
	}
	return project, nil
}

// Project reads a project of any state.
func (s *Store) Project(ctx context.Context, account protocol.AccountID, id protocol.ProjectID) (*protocol.Project, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Project], selectProjectSQL,
		pgx.NamedArgs{"account": account, "project": id})
}

const namedSQL = `
	(select project_id from projects where account_id = @account and project_id = @project and state <> 'deleted')
	union all
	(select project_id from projects where account_id = @account and name_key = lower(@name) and state <> 'deleted'
	order by archived_at nulls first, project_id limit 1)
	limit 1`

// Named returns the project with a name, in any case, or with an identifier; nil: there is none. Active projects come first.
func (s *Store) Named(ctx context.Context, account protocol.AccountID, name string) (*protocol.ProjectID, error) {
	args := pgx.NamedArgs{"account": account, "name": name, "project": nil}
	if id := new(protocol.ProjectID); id.UnmarshalText([]byte(name)) == nil {
		args["project"] = id
	}
	found, err := pg.Rows(ctx, s.db, account, pgx.RowTo[protocol.ProjectID], namedSQL, args)
	if err != nil {
		return nil, fmt.Errorf("looking for a project by its name: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0], nil
}

const insertProjectSQL = `insert into projects (account_id, project_id, name) values (@account, @project, @name)`

// CreateProject creates an active project. session is that of the request.
func (s *Store) CreateProject(ctx context.Context, account protocol.AccountID, name string, session *protocol.SessionID) (made *protocol.Project, err error) {
	id := protocol.NewProjectID()
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(insertProjectSQL, pgx.NamedArgs{"account": account, "project": id, "name": name})
		Work{Kind: protocol.WorkProjectCreated, SessionID: session}.Queue(batch, account, id)
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("creating a project: %w", err)
		}
		if made, err = Read(ctx, tx, account, id); err != nil {
			return err
		}
		return idempotency.StoreResponseIn(ctx, tx, made)
	})
	return made, err
}

// Every list is in descending order of identifiers, so the newest project comes first.
const (
	listProjectsSQL = `
	select ` + Columns + ` from projects p
	where p.account_id = @account and p.project_id < @after
	order by p.project_id desc limit @limit`
	listProjectsInSQL = `
	select ` + Columns + ` from projects p
	where p.account_id = @account and p.state = @state and p.project_id < @after
	order by p.project_id desc limit @limit`
)

// ListProjects returns a page of the projects in a state; an empty state means any. The page starts after a project; nil
// starts at the beginning. next is nil at the end.
func (s *Store) ListProjects(ctx context.Context, account protocol.AccountID, state protocol.ProjectState,
	after *protocol.ProjectID, limit int,
) (page []protocol.Project, next *protocol.ProjectID, err error) {
	args := pgx.NamedArgs{"account": account, "after": Position(after), "limit": limit + 1}
	sql := listProjectsSQL
	if state != "" {
		sql, args["state"] = listProjectsInSQL, string(state)
	}
	page, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.Project], sql, args)
	if err != nil {
		return nil, nil, fmt.Errorf("listing projects: %w", err)
	}
	return NextPage(page, limit)
}

// Position returns the position after which a page of projects starts; nil: before all.
func Position(after *protocol.ProjectID) protocol.ProjectID {
	if after == nil {
		return protocol.ProjectID(pg.HighestID)
	}
	return *after
}

// NextPage returns the rows that form a page of projects, and the position after it.
func NextPage(rows []protocol.Project, limit int) (page []protocol.Project, next *protocol.ProjectID, err error) {
	return pg.NextPage(rows, limit, func(last *protocol.Project) protocol.ProjectID { return last.ProjectID })
}
