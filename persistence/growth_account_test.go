package persistence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"turnstone/persistence"
	"turnstone/protocol"
)

// largeAccountSQL gives an account $4 of each: open conversations, archived ones in a project, temporary ones; branches
// that begin at the first answer of a conversation; sessions that were signed out; held and started follow-ups; usage
// records of one moment.
var largeAccountSQL = []string{
	`
	insert into conversations (account_id, conversation_id, active_branch_id, archived_at, project_id, temporary)
	select $1, md5(kind || n)::uuid, md5(kind || n)::uuid, case kind when 'archived' then now() end,
	       case kind when 'archived' then $3::uuid end, kind = 'temporary'
	from generate_series(1, $4::int) n, unnest(array['open', 'archived', 'temporary']) kind where $2::uuid is not null`, `
	insert into branches (account_id, branch_id, conversation_id)
	select account_id, active_branch_id, conversation_id from conversations
	where account_id = $1 and conversation_id <> $2 and $3::uuid is not null and $4::int > 0`, `
	with trunk as (
		select q.branch_id, q.message_id as question, a.message_id as answer
		from messages q join messages a on a.account_id = q.account_id and a.parent_message_id = q.message_id
		where q.account_id = $1 and q.conversation_id = $2 and q.depth = 1
	), made as (
		insert into branches (account_id, branch_id, conversation_id, base_message_id, head_message_id, head_depth)
		select $1, md5('branch' || n)::uuid, $2, question, md5('answer' || n)::uuid, 2
		from trunk, generate_series(1, $4::int) n where $3::uuid is not null
	), segments as (
		insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
		select $1, md5('branch' || n)::uuid, branch_id, 1, 1 from trunk, generate_series(1, $4::int) n
		union all select $1, md5('branch' || n)::uuid, md5('branch' || n)::uuid, 2, 2147483647 from generate_series(1, $4::int) n
	)
	insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts, sibling_index)
	select $1, md5('answer' || n)::uuid, $2, md5('branch' || n)::uuid, 2, question, 'assistant', 'complete', '[]', n
	from trunk, generate_series(1, $4::int) n`, `
	insert into sessions (token_hash, session_id, account_id, expires_at, revoked_at)
	select sha256(n::text::bytea), gen_random_uuid(), $1, now() + interval '1 day', now()
	from generate_series(1, $4::int) n where $2::uuid is not null and $3::uuid is not null`, `
	insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
	select $1, gen_random_uuid(), $2, case n % 2 when 0 then 'held' else 'started' end, 'x', n
	from generate_series(1, $4::int) n where $3::uuid is not null`, `
	insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, occurred_at)
	select $1, gen_random_uuid(), 'client', 'x', 1, 'x', $2, '2026-01-01'
	from generate_series(1, $4::int) n where $3::uuid is not null`,
}

// TestNoReadGrowsWithItsAccount measures the reads of an account that has 10,000 of everything.
func TestNoReadGrowsWithItsAccount(t *testing.T) {
	metered(t, noReadGrowsWithItsAccount)
}

func noReadGrowsWithItsAccount(t *testing.T, w meteredWorld) {
	const size = 10_000
	turn := w.start(w.request(nil, "hello"))
	turn.end(nil)
	id, answer := turn.spec.ConversationID, turn.spec.AssistantMessageID
	turn = w.start(w.request(&id, "and then?"))
	turn.end(nil)
	var project protocol.ProjectID
	project[15] = 1
	for _, sql := range largeAccountSQL {
		w.database.Admin(t, sql, w.account, id, project, size)
	}
	few := protocol.NewConversationID() // archived and pinned, in no project; and one that is open in the project
	for _, sql := range []string{
		`
		insert into conversations (account_id, conversation_id, active_branch_id, archived_at, pinned_at) values ($1, $2, $2, now(), now())`, `
		insert into branches (account_id, branch_id, conversation_id) values ($1, $2, $2)`,
	} {
		w.database.Admin(t, sql, w.account, few)
	}
	w.database.Admin(t, `update conversations set project_id = $2 where conversation_id = $1`, id, project)
	w.analyze()
	yes, no := true, false
	list := func(filter persistence.ConversationFilter, want int) func() {
		return func() {
			page, _, err := w.db.ListConversations(t.Context(), w.account, &filter, nil, 20)
			if err != nil || len(page) != want {
				t.Errorf("%+v: %d conversations, %v", filter, len(page), err)
			}
		}
	}
	messages := func(query persistence.MessageQuery, want int) func() {
		return func() {
			query.ConversationID, query.Limit = id, 20
			page, err := w.db.Messages(t.Context(), w.account, &query)
			if err != nil || len(page.Messages) != want || page.Messages[1].SiblingCount != size+1 {
				t.Errorf("%d messages, %v", len(page.Messages), err)
			}
		}
	}
	branch, err := persistence.Row(t.Context(), w.db, w.account, pgx.RowTo[protocol.BranchID], `select md5('branch5000')::uuid`)
	w.must(err)
	for _, read := range []struct {
		name string
		most int
		call func()
	}{
		{"open conversations", 400, list(persistence.ConversationFilter{Archived: &no}, 20)},
		{"archived conversations", 400, list(persistence.ConversationFilter{Archived: &yes}, 20)},
		{"all conversations", 400, list(persistence.ConversationFilter{}, 20)},
		{"pinned conversations", 60, list(persistence.ConversationFilter{Archived: &no, Pinned: &yes}, 0)},
		{"archived and pinned conversations", 60, list(persistence.ConversationFilter{Archived: &yes, Pinned: &yes}, 1)},
		{"conversations without a pin", 400, list(persistence.ConversationFilter{Pinned: &no}, 20)},
		{"open conversations of a project", 60, list(persistence.ConversationFilter{Archived: &no, ProjectID: &project}, 1)},
		{"archived conversations of a project", 400, list(persistence.ConversationFilter{Archived: &yes, ProjectID: &project}, 20)},
		{"a pinned conversation of a project", 60, list(persistence.ConversationFilter{Archived: &yes, Pinned: &yes, ProjectID: &project}, 0)},
		{"messages with many siblings", 1500, messages(persistence.MessageQuery{}, 4)},
		{"messages of another branch", 800, messages(persistence.MessageQuery{BranchID: &branch}, 2)},
		{"messages around one", 1500, messages(persistence.MessageQuery{Around: &answer}, 4)},
		{"one message", 700, func() {
			found, err := w.db.GetMessage(t.Context(), w.account, answer)
			if err != nil || found.SiblingIndex != 0 || found.SiblingCount != size+1 || found.NextSibling == nil || found.PreviousSibling != nil {
				t.Errorf("%+v, %v", found, err)
			}
		}},
		{"branches", 120, func() {
			page, _, err := w.db.ListBranches(t.Context(), w.account, id, protocol.BranchID{}, 20)
			if err != nil || len(page) != 20 {
				t.Errorf("%d branches, %v", len(page), err)
			}
		}},
		{"a conversation", 60, func() {
			_, err := w.db.Conversation(t.Context(), w.account, id)
			w.must(err)
		}},
		{"the page of a conversation", 200, func() {
			_, err := w.db.ConversationPage(t.Context(), w.account, id)
			w.must(err)
		}},
		{"sessions", 60, func() {
			page, _, err := w.db.ListSessions(t.Context(), w.account, &persistence.SessionQuery{Now: time.Now(), Limit: 20})
			if err != nil || len(page) != 0 {
				t.Errorf("%d sessions, %v", len(page), err)
			}
		}},
		{"usage of one moment", 120, func() {
			page, _, err := w.db.ListUsage(t.Context(), w.account, id, nil, 20)
			if err != nil || len(page) != 20 {
				t.Errorf("%d records, %v", len(page), err)
			}
		}},
		{"starting and ending turns that edit, with held follow-ups", 900, func() {
			edit := w.request(&id, "once more")
			edit.Branch = &protocol.BranchRequest{MessageID: turn.spec.UserMessageID, Mode: protocol.BranchEdit}
			w.start(edit).end(nil)
		}},
		{"what a deletion would break off", 1500, func() {
			live := w.start(w.request(&id, "last"))
			work, err := w.db.DeleteConversation(t.Context(), w.account, &persistence.Deletion{ConversationID: id})
			if err != nil || work == nil || work.WillDelete["branches"] != 1000 || work.WillDelete["follow_ups"] != 1000 {
				t.Errorf("%+v, %v", work, err)
			}
			live.end(nil)
		}},
	} {
		w.wantPages(read.name, read.most, read.call)
	}
}

func TestAPurgeReadsWhatItErases(t *testing.T) {
	metered(t, aPurgeReadsWhatItErases)
}

func aPurgeReadsWhatItErases(t *testing.T, w meteredWorld) {
	turn := w.start(w.request(nil, "hello"))
	turn.end(nil)
	id := turn.spec.ConversationID
	w.database.Admin(t, `
		insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, next_sequence)
		select account_id, md5(n::text)::uuid, conversation_id, branch_id, user_message_id, assistant_message_id, '{}', 'completed', false, 2
		from turns, generate_series(1, $1::int) n where account_id = $2`, grown, w.account)
	w.database.Admin(t, `
		insert into turn_replays (account_id, turn_id, last_sequence, raw_bytes, frames)
		select account_id, turn_id, 1, 1, 'x' from turns where turn_id not in (select turn_id from turn_replays) and account_id = $1`, w.account)
	w.analyze()
	_, err := w.db.DeleteConversation(t.Context(), w.account, &persistence.Deletion{ConversationID: id})
	w.must(err)
	const limit = 200
	rows := w.counted(rowsReadSQL, func() {
		if done, err := w.db.PurgeConversation(t.Context(), w.account, id, limit); err != nil || done {
			t.Errorf("done %v, %v", done, err)
		}
	})
	if rows > 20*limit {
		t.Errorf("erasing %d rows reads %d", limit, rows)
	}
	for done := false; !done; {
		done, err = w.db.PurgeConversation(t.Context(), w.account, id, 5000)
		w.must(err)
	}
	if left := w.count(`select (select count(*) from turns) + (select count(*) from turn_replays)`); left != 0 {
		t.Errorf("%d rows are left", left)
	}
}

func TestASweepOfQueuesLooksAtSomeAndMissesNone(t *testing.T) {
	w := newWorld(t)
	live := w.start(w.request(nil, "hello"))
	waiting := live.spec.ConversationID
	w.database.Admin(t, `
		insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position, created_at)
		select $1, gen_random_uuid(), $2, 'queued', 'x', n, now() - interval '1 day' from generate_series(1, 2500) n`, w.account, waiting)
	idle := w.start(w.request(nil, "hello"))
	idle.end(nil)
	for range 2 {
		w.database.Admin(t, `
			insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position, created_at)
			values ($1, gen_random_uuid(), $2, 'queued', 'x', 1, now() - interval '1 hour')`, w.account, idle.spec.ConversationID)
		var begun []int
		for range 4 {
			started, err := w.directory.StandingQueues(t.Context(), w.node, 10, beginTurn)
			w.must(err)
			begun = append(begun, len(started))
			for _, turn := range started {
				w.alive(turn.Spec, turn.Begin).end(nil)
			}
		}
		if fmt.Sprint(begun) != "[0 0 1 0]" {
			t.Errorf("sweeps began %v", begun)
		}
		// The fourth sweep began with the oldest again; two more reach the end.
		for range 2 {
			_, err := w.directory.StandingQueues(t.Context(), w.node, 10, beginTurn)
			w.must(err)
		}
	}
}

func TestDisablingAnAccountReadsWhatItStops(t *testing.T) {
	metered(t, disablingAnAccountReadsWhatItStops)
}

func disablingAnAccountReadsWhatItStops(t *testing.T, w meteredWorld) {
	turn := w.start(w.request(nil, "hello"))
	turn.end(nil)
	for _, sql := range []string{`
		insert into conversations (account_id, conversation_id, active_branch_id)
		select $1, md5(n::text)::uuid, md5(n::text)::uuid from generate_series(1, $2::int) n`, `
		insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, next_sequence)
		select account_id, md5(n::text)::uuid, conversation_id, branch_id, user_message_id, assistant_message_id, '{}', 'completed', false, 2
		from turns, generate_series(1, $2::int) n where account_id = $1`, `
		insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
		select $1, md5(n::text)::uuid, md5(n::text)::uuid, case n % 2 when 0 then 'held' else 'started' end, 'x', 1
		from generate_series(1, $2::int) n`} {
		w.database.Admin(t, sql, w.account, grown)
	}
	live := w.start(w.request(nil, "still live"))
	w.analyze()
	for name, run := range map[string]func(){
		"disabling": func() { w.must(w.db.DisableAccount(t.Context(), w.account, time.Now(), persistence.Requester{})) },
		"stopping": func() {
			var stopped []protocol.TurnID
			w.must(w.db.DisableAccount(t.Context(), w.account, time.Now(), persistence.Requester{}))
			err := w.db.StopAccount(t.Context(), w.account, func(_ context.Context, _ protocol.AccountID, turn protocol.TurnID) error {
				stopped = append(stopped, turn)
				return nil
			})
			var later *river.JobSnoozeError // it looks again whether the turn has ended
			if !errors.As(err, &later) || len(stopped) != 1 || stopped[0] != live.spec.TurnID {
				t.Errorf("stopped %v, %v", stopped, err)
			}
		},
	} {
		w.wantPages(name, 200, func() {
			// A queue that waits, which disabling holds.
			w.database.Admin(t, `
				insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
				select account_id, gen_random_uuid(), conversation_id, 'queued', 'x', 1 from conversations
				where account_id = $1 and conversation_id = md5('7')::uuid`, w.account)
			run()
			if waiting := w.count(`select count(*) from follow_ups where state = 'queued'`); waiting != 0 {
				t.Errorf("%d items are not held", waiting)
			}
			w.must(w.db.EnableAccount(t.Context(), w.account, persistence.Requester{}))
		})
	}
}

// The job queue finds its few open jobs beside all those of the last day.
func TestTheJobQueueReadsNoFinishedJobs(t *testing.T) {
	w := newWorld(t)
	const made = `
		insert into river.river_job (args, kind, max_attempts, state, finalized_at, attempted_at, attempt, queue, created_at, scheduled_at)
		select '{}', 'title', 3, $1::text::river.river_job_state, case $1 when 'completed' then now() end, now(), 1, 'default', now(), now()
		from generate_series(1, $2::int)`
	w.database.Admin(t, made, "completed", grown)
	w.database.Admin(t, made, "running", 3)
	w.database.Admin(t, `vacuum analyze river.river_job`)
	pool, err := w.db.JobPool(t.Context())
	w.must(err)
	defer pool.Close()
	driver := riverpgxv5.New(pool).GetExecutor()
	const schema, most = "river", 1000
	for name, run := range map[string]func() error{
		"rescuing": func() error {
			stuck, err := driver.JobGetStuck(t.Context(), &riverdriver.JobGetStuckParams{Max: most, Schema: schema, StuckHorizon: time.Now().Add(time.Hour)})
			if len(stuck) != 3 {
				t.Errorf("%d jobs are stuck", len(stuck))
			}
			return err
		},
		"cleaning": func() error {
			yesterday := time.Now().Add(-24 * time.Hour)
			deleted, err := driver.JobDeleteBefore(t.Context(), &riverdriver.JobDeleteBeforeParams{
				CancelledDoDelete: true, CompletedDoDelete: true, DiscardedDoDelete: true, Max: most, Schema: schema,
				CancelledFinalizedAtHorizon: yesterday, CompletedFinalizedAtHorizon: yesterday, DiscardedFinalizedAtHorizon: yesterday,
			})
			if deleted != 0 {
				t.Errorf("%d jobs were deleted", deleted)
			}
			return err
		},
		"scheduling": func() error {
			_, err := driver.JobSchedule(t.Context(), &riverdriver.JobScheduleParams{Max: most, Schema: schema})
			return err
		},
		"fetching": func() error {
			_, err := driver.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{ClientID: "test", MaxToLock: 4, MaxAttemptedBy: 10, Queue: "default", Schema: schema})
			return err
		},
	} {
		pages := func() int {
			w.must(pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
				for range 2 { // the first flush is that of the call before it
					if _, err := conn.Exec(t.Context(), flushStatsSQL); err != nil {
						return err
					}
				}
				return nil
			}))
			return w.count(`select (heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)::int from pg_statio_user_tables where schemaname = 'river' and relname = 'river_job'`)
		}
		w.must(run()) // plans are made the first time
		before := pages()
		w.must(run())
		if read := pages() - before; read > 60 {
			t.Errorf("%s reads %d pages", name, read)
		} else {
			t.Logf("%s: %d pages", name, read)
		}
	}
}
