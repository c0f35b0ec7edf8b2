package research

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/accounts"
	"turnstone/persistence/artifacts"
	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// Store stores research tasks. Its methods may be called from any goroutine.
type Store struct {
	db        *pg.DB
	artifacts *artifacts.Store
}

// New returns a store whose reports are artifacts.
func New(db *pg.DB, artifacts *artifacts.Store) *Store { return &Store{db, artifacts} }

const (
	// visible selects tasks whose conversations are visible. The planner may turn "exists" into a join, which reads all tasks of the
	// account for each page; a subquery that returns a value is evaluated for each row of the page only.
	visible = `(select ` + conversations.Visible + ` from conversations c where c.account_id = t.account_id and c.conversation_id = t.conversation_id)`

	getTaskSQL   = `select body from research_tasks t where account_id = @account and task_id = @task and ` + visible
	listTasksSQL = `
	select task_id, body from research_tasks t
	where account_id = @account and conversation_id = @conversation and task_id < @before
	order by task_id desc limit @limit`
	// Each half is read by an index of its own. With "or", or with the order inside, the planner may read all tasks of the account.
	reportTaskSQL = `
	with found as materialized (` + tasksWithSQL + `message_id = @report union all ` + tasksWithSQL + `artifact_id = @report)
	select body from found where conversation_id = @conversation and task_id < @before order by task_id desc limit @limit`
	tasksWithSQL   = `select task_id, conversation_id, body from research_tasks where account_id = @account and `
	ofAccount      = `select task_id, body from research_tasks t where account_id = @account and task_id < @before and ` + visible
	newestFirst    = ` order by task_id desc limit @limit`
	listAccountSQL = ofAccount + newestFirst
	// At most protocol.MaxResearchWaiting tasks have not ended. They are found in an index of their own, however many have ended.
	listOpenSQL = `
	with t as materialized (select account_id, task_id, conversation_id, body from research_tasks where account_id = @account and ` + open.Tasks + `)
	select task_id, body from t where task_id < @before and ` + visible + newestFirst
	conversationExistsSQL = `select true from conversations c where account_id = @account and conversation_id = @conversation and ` + conversations.Visible
)

// Task reads a task; protocol.CodeNotFound if the account has none, or its conversation was deleted.
func (s *Store) Task(ctx context.Context, account protocol.AccountID, id protocol.TaskID) (*protocol.ResearchTask, error) {
	task, err := pg.Row(ctx, s.db, account, pgx.RowTo[*protocol.ResearchTask], getTaskSQL, pgx.NamedArgs{"account": account, "task": id})
	if err != nil {
		return nil, fmt.Errorf("reading a research task: %w", err)
	}
	return task, nil
}

// List returns a page of the tasks of a conversation, newest first. It starts after a task; nil starts at the beginning. With report,
// the identifier of a message or of an artifact, it returns only the task that has written that. next is nil at the end.
func (s *Store) List(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, report string, after *protocol.TaskID, limit int) (
	page []*protocol.ResearchTask, next *protocol.TaskID, err error,
) {
	sql := pageOf(listTasksSQL)
	if report != "" {
		sql = reportTaskSQL
	}
	args := pgx.NamedArgs{"account": account, "conversation": conversation, "report": report, "before": beforeOf(after), "limit": limit + 1}
	batch := &pgx.Batch{}
	batch.Queue(conversationExistsSQL, args).QueryRow(func(row pgx.Row) error {
		var found bool
		return row.Scan(&found)
	})
	batch.Queue(sql, args).Query(func(rows pgx.Rows) (err error) {
		page, err = pgx.CollectRows(rows, pgx.RowTo[*protocol.ResearchTask])
		return err
	})
	if err := pg.Classify(s.db.Send(ctx, account, batch)); err != nil {
		return nil, nil, fmt.Errorf("listing research tasks: %w", err)
	}
	return nextPage(page, limit)
}

// ListAll is List for all conversations of an account. With open, it leaves out the tasks that have ended.
func (s *Store) ListAll(ctx context.Context, account protocol.AccountID, open bool, after *protocol.TaskID, limit int) (page []*protocol.ResearchTask, next *protocol.TaskID, err error) {
	sql := pageOf(listAccountSQL)
	if open {
		sql = pageOf(listOpenSQL)
	}
	page, err = pg.Rows(ctx, s.db, account, pgx.RowTo[*protocol.ResearchTask], sql, pgx.NamedArgs{"account": account, "before": beforeOf(after), "limit": limit + 1})
	if err != nil {
		return nil, nil, fmt.Errorf("listing research tasks: %w", err)
	}
	return nextPage(page, limit)
}

// pageOf returns the statement of a page of a list of tasks.
func pageOf(list string) string {
	return pg.WithinPage(list, `body`, bodySize, `task_id desc`)
}

// bodySize is the size of a task or of a source in bytes.
const bodySize = `octet_length(body::text)`

func beforeOf(after *protocol.TaskID) protocol.TaskID {
	if after == nil {
		return protocol.TaskID(pg.HighestID)
	}
	return *after
}

// nextPage returns the tasks that form a page, and the start of the next page.
func nextPage(found []*protocol.ResearchTask, limit int) (page []*protocol.ResearchTask, next *protocol.TaskID, err error) {
	return pg.NextPage(found, limit, func(last **protocol.ResearchTask) protocol.TaskID { return (*last).TaskID })
}

const ownsTaskSQL = `select true from research_tasks t where account_id = @account and task_id = @task and ` + visible

const framesSQL = `
	select first_sequence, last_sequence, frames from research_events
	where account_id = @account and task_id = @task and last_sequence > @after
	order by first_sequence limit 200`

// Frames returns events of a task after a sequence, one per line. last is the sequence of the last of them. The error is
// protocol.CodeNotFound if the conversation of the task was deleted.
func (s *Store) Frames(ctx context.Context, account protocol.AccountID, id protocol.TaskID, after int64) (frames []byte, last int64, err error) {
	var found []pg.EventRow
	args := pgx.NamedArgs{"account": account, "task": id, "after": after}
	statements := &pgx.Batch{}
	statements.Queue(ownsTaskSQL, args).QueryRow(func(row pgx.Row) error {
		var owns bool
		return row.Scan(&owns)
	})
	statements.Queue(framesSQL, args).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[pg.EventRow])
		return err
	})
	if err := pg.Classify(s.db.Send(ctx, account, statements)); err != nil {
		return nil, 0, fmt.Errorf("reading the events of a research task: %w", err)
	}
	frames, last = pg.FramesAfter(found, after)
	return frames, last, nil
}

const listSourcesSQL = `
	select ordinal, body from research_sources
	where account_id = @account and task_id = @task and ordinal > @after
	order by ordinal limit @limit`

// Sources returns a page of the sources of which a task keeps excerpts, in the order in which it found them. It starts after an
// ordinal; -1 starts at the beginning. next is nil at the end.
func (s *Store) Sources(ctx context.Context, account protocol.AccountID, id protocol.TaskID, after, limit int) (page []protocol.ResearchKeptSource, next *int, err error) {
	type row struct {
		Ordinal int
		Body    protocol.ResearchKeptSource
	}
	var rows []row
	args := pgx.NamedArgs{"account": account, "task": id, "after": after, "limit": limit + 1}
	batch := &pgx.Batch{}
	batch.Queue(getTaskSQL, args).QueryRow(func(row pgx.Row) error {
		var task protocol.ResearchTask
		return row.Scan(&task)
	})
	batch.Queue(pg.WithinPage(listSourcesSQL, `ordinal, body`, bodySize, `ordinal`), args).Query(func(found pgx.Rows) (err error) {
		rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[row])
		return err
	})
	if err := pg.Classify(s.db.Send(ctx, account, batch)); err != nil {
		return nil, nil, fmt.Errorf("listing the sources of a research task: %w", err)
	}
	rows, next, err = pg.NextPage(rows, limit, func(last *row) int { return last.Ordinal })
	if err != nil {
		return nil, nil, err
	}
	page = make([]protocol.ResearchKeptSource, len(rows))
	for i, r := range rows {
		page[i] = r.Body
	}
	return page, next, nil
}

const (
	countOpenSQL  = `select count(*) from research_tasks where account_id = @account and not hidden and ` + open.Tasks
	insertTaskSQL = `
	insert into research_tasks (account_id, task_id, conversation_id, question, state, spec, body, version, next_sequence, next_entry, created_at)
	values (@account, @task, @conversation, @question, 'queued', @spec, @body, @version, @last + 1, 1, @created)`
	// A conversation that begins with a task has the beginning of its question as the title.
	noteTaskSQL = `
	update conversations set provisional_title = coalesce(nullif(provisional_title, ''), @title), last_activity_at = @created
	where account_id = @account and conversation_id = @conversation`
	insertEventsSQL = `
	insert into research_events (account_id, task_id, first_sequence, last_sequence, frames) values (@account, @task, @first, @last, @frames)`
)

// Create stores a new task with its first event, and the response to an idempotent request. If a repeated call of a tool has
// stored the task before, that is returned. The errors are protocol.CodeNotFound for the conversation, a conflict with an archived project, and protocol.CodeTooManyTasks.
func (s *Store) Create(ctx context.Context, spec *researchlog.Spec, begin *researchlog.Append) (task *protocol.ResearchTask, err error) {
	if err := s.db.CheckSpace(); err != nil {
		return nil, err
	}
	specified, body, err := encoded(spec, &begin.Task)
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{
		"account": spec.AccountID, "task": spec.TaskID, "conversation": spec.ConversationID, "question": spec.Question,
		"title": conversations.ProvisionalTitle(spec.Question), "spec": specified, "body": body, "version": begin.Task.Version,
		"first": begin.First, "last": begin.Last, "frames": begin.Frames, "created": spec.CreatedAt,
	}
	err = s.db.InTx(ctx, spec.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		project, earlier, err := admit(ctx, tx, spec, args)
		if err != nil || earlier != nil {
			task = earlier
			return err
		}
		batch := &pgx.Batch{}
		if project != nil {
			projects.Work{Kind: protocol.WorkTaskStarted, SessionID: spec.SessionID, ConversationID: &spec.ConversationID, TaskID: &spec.TaskID}.
				Queue(batch, spec.AccountID, *project)
		}
		batch.Queue(noteTaskSQL, args)
		batch.Queue(insertTaskSQL, args)
		batch.Queue(insertEventsSQL, args)
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("creating a research task: %w", err)
		}
		task = &begin.Task
		return idempotency.StoreResponseIn(ctx, tx, task)
	})
	if err != nil {
		return nil, err
	}
	return task, nil
}

// CanCreate returns the error that Create would return now.
func (s *Store) CanCreate(ctx context.Context, spec *researchlog.Spec) error {
	if err := s.db.CheckSpace(); err != nil {
		return err
	}
	return s.db.InTx(ctx, spec.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		_, _, err := admit(ctx, tx, spec, pgx.NamedArgs{"account": spec.AccountID, "task": spec.TaskID})
		return err
	})
}

// admit locks the conversation of a new task and returns its project. If a repeated call of a tool has stored the task before, that is
// returned.
func admit(ctx context.Context, tx *pg.Tx, spec *researchlog.Spec, args pgx.NamedArgs) (project *protocol.ProjectID, earlier *protocol.ResearchTask, err error) {
	locked, err := conversations.LockConversation(ctx, tx, spec.AccountID, spec.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	if spec.TurnID != nil {
		if stored := tx.QueryRow(ctx, getTaskSQL, args).Scan(&earlier); !errors.Is(stored, pgx.ErrNoRows) {
			return nil, earlier, stored
		}
	}
	if locked.ProjectID != nil {
		project, err := projects.Read(ctx, tx, spec.AccountID, *locked.ProjectID)
		if err != nil {
			return nil, nil, err
		}
		if err := projects.CheckActive(project); err != nil {
			return nil, nil, err
		}
	}
	return locked.ProjectID, nil, checkOpen(ctx, tx, args)
}

// checkOpen returns an error if the account has too many tasks that have not ended. It locks the account, so that starts in other
// conversations are not counted too late.
func checkOpen(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) error {
	var open int
	batch := &pgx.Batch{}
	batch.Queue(accounts.LockAccountSQL, args["account"])
	batch.Queue(countOpenSQL, args).QueryRow(func(row pgx.Row) error { return row.Scan(&open) })
	if err := tx.Run(ctx, batch); err != nil {
		return fmt.Errorf("counting research tasks: %w", err)
	}
	if open >= protocol.MaxResearchWaiting {
		return &protocol.Error{
			Code: protocol.CodeTooManyTasks, RetryAfter: 60,
			Detail: fmt.Sprintf("At most %d research tasks can wait or run. Wait until some have ended, or cancel them.", protocol.MaxResearchWaiting),
		}
	}
	return nil
}

func encoded(spec *researchlog.Spec, task *protocol.ResearchTask) (specified, body []byte, err error) {
	if specified, err = pg.JSONText(spec); err != nil {
		return nil, nil, err
	}
	body, err = pg.JSONText(task)
	return specified, body, err
}

// CheckReport implements the store of package actors/research.
func (s *Store) CheckReport(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, bytes int) error {
	return s.artifacts.CheckReport(ctx, account, conversation, bytes)
}

// OwnsTask returns protocol.CodeNotFound unless the account has the task. It is called before a body is read.
func (s *Store) OwnsTask(ctx context.Context, account protocol.AccountID, id protocol.TaskID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsTaskSQL, pgx.NamedArgs{"account": account, "task": id})
	return err
}

const keptSQL = `
	select s.body from (
		select account_id, task_id from research_tasks t
		where account_id = @account and conversation_id = @conversation and ` + visible + `
		order by task_id desc limit 20) t
	cross join lateral (
		select ordinal, body from research_sources where account_id = t.account_id and task_id = t.task_id order by ordinal limit @limit) s
	order by t.task_id desc, s.ordinal limit @limit`

// Kept returns sources that the newest tasks of a conversation keep, those of newer tasks first, at most limit.
func (s *Store) Kept(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, limit int) ([]protocol.ResearchKeptSource, error) {
	kept, err := pg.Rows(ctx, s.db, account, pgx.RowTo[protocol.ResearchKeptSource], keptSQL, pgx.NamedArgs{"account": account, "conversation": conversation, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("reading the sources of a conversation's research: %w", err)
	}
	return kept, nil
}

// The sources of a task are read with it, as one array.
const exportedSQL = `
	select t.body, (
		select coalesce(json_agg(s.body order by s.ordinal), '[]') from research_sources s where s.account_id = t.account_id and s.task_id = t.task_id) as kept
	from research_tasks t
	join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id
	where t.account_id = @account and t.task_id > @after and ` + conversations.Visible + ` and not c.temporary
	order by t.task_id limit @limit`

// Exported returns tasks with the sources that they keep, in the order of their identifiers, after one of these. It leaves out those
// of temporary conversations.
func (s *Store) Exported(ctx context.Context, account protocol.AccountID, after protocol.TaskID, limit int) ([]protocol.ExportedResearch, error) {
	found, err := pg.Rows(ctx, s.db, account, func(row pgx.CollectableRow) (e protocol.ExportedResearch, err error) {
		err = row.Scan(&e.ResearchTask, &e.Kept)
		return e, err
	}, exportedSQL, pgx.NamedArgs{"account": account, "after": after, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("reading research tasks: %w", err)
	}
	return found, nil
}
