package turns_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/operator"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// largeAccountSQL gives an account $4 rows of each kind: open conversations, archived ones in a project, temporary
// ones; branches that start at the first answer of a conversation; sessions that were signed out; held and started
// follow-ups; usage records of the same time.
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

// enlarge gives the account size rows of each kind, and the conversation those that belong to one. It returns the project
// of the archived conversations.
func (w *meteredWorld) enlarge(conversation protocol.ConversationID, size int) (project protocol.ProjectID) {
	w.Helper()
	project[15] = 1
	w.Database.Admin(w, `insert into projects (account_id, project_id, name) values ($1, $2, 'x')`, w.Account, project)
	for _, sql := range largeAccountSQL {
		w.Database.Fill(w, sql, w.Account, conversation, project, size)
	}
	return project
}

// TestNoReadGrowsWithItsAccount measures the reads of an account that has 10,000 rows of each kind.
func TestNoReadGrowsWithItsAccount(t *testing.T) {
	metered(t, noReadGrowsWithItsAccount)
}

func noReadGrowsWithItsAccount(t *testing.T, w meteredWorld) {
	const size = 10_000
	turn := w.Start(w.Request(nil, "hello"))
	turn.End(nil)
	id, answer := turn.Spec.ConversationID, turn.Spec.AssistantMessageID
	turn = w.Start(w.Request(&id, "and then?"))
	turn.End(nil)
	project := w.enlarge(id, size)
	few := protocol.NewConversationID() // archived, pinned and in no project; id is open and gets a project below
	for _, sql := range []string{
		`
		insert into conversations (account_id, conversation_id, active_branch_id, archived_at, pinned_at) values ($1, $2, $2, now(), now())`, `
		insert into branches (account_id, branch_id, conversation_id) values ($1, $2, $2)`,
	} {
		w.Database.Admin(t, sql, w.Account, few)
	}
	w.Database.Admin(t, `update conversations set project_id = $2 where conversation_id = $1`, id, project)
	w.analyze()
	yes, no := true, false
	list := func(filter conversations.ConversationFilter, want int) func() {
		return func() {
			page, _, err := w.DB.Conversations.ListConversations(t.Context(), w.Account, &filter, nil, 20)
			if err != nil || len(page) != want {
				t.Errorf("%+v: %d conversations, %v", filter, len(page), err)
			}
		}
	}
	messages := func(query conversations.MessageQuery, want int) func() {
		return func() {
			query.ConversationID, query.Limit = id, 20
			page, err := w.DB.Conversations.Messages(t.Context(), w.Account, &query)
			if err != nil || len(page.Messages) != want || page.Messages[1].SiblingCount != size+1 {
				t.Errorf("%d messages, %v", len(page.Messages), err)
			}
		}
	}
	branch, err := pg.Row(t.Context(), w.DB.DB, w.Account, pgx.RowTo[protocol.BranchID], `select md5('branch5000')::uuid`)
	w.Must(err)
	for _, read := range []struct {
		name string
		most int
		call func()
	}{
		{"open conversations", 400, list(conversations.ConversationFilter{Archived: &no}, 20)},
		{"archived conversations", 400, list(conversations.ConversationFilter{Archived: &yes}, 20)},
		{"all conversations", 400, list(conversations.ConversationFilter{}, 20)},
		{"pinned conversations", 60, list(conversations.ConversationFilter{Archived: &no, Pinned: &yes}, 0)},
		{"archived and pinned conversations", 60, list(conversations.ConversationFilter{Archived: &yes, Pinned: &yes}, 1)},
		{"conversations without a pin", 400, list(conversations.ConversationFilter{Pinned: &no}, 20)},
		{"open conversations of a project", 60, list(conversations.ConversationFilter{Archived: &no, ProjectID: &project}, 1)},
		{"archived conversations of a project", 400, list(conversations.ConversationFilter{Archived: &yes, ProjectID: &project}, 20)},
		{"a pinned conversation of a project", 60, list(conversations.ConversationFilter{Archived: &yes, Pinned: &yes, ProjectID: &project}, 0)},
		{"messages with many siblings", 1500, messages(conversations.MessageQuery{}, 4)},
		{"messages of another branch", 800, messages(conversations.MessageQuery{BranchID: &branch}, 2)},
		{"messages around one", 1500, messages(conversations.MessageQuery{Around: &answer}, 4)},
		{"one message", 700, func() {
			found, err := w.DB.Conversations.GetMessage(t.Context(), w.Account, answer)
			if err != nil || found.SiblingIndex != 0 || found.SiblingCount != size+1 || found.NextSibling == nil || found.PreviousSibling != nil {
				t.Errorf("%+v, %v", found, err)
			}
		}},
		{"branches", 300, func() {
			page, _, err := w.DB.Conversations.ListBranches(t.Context(), w.Account, id, protocol.BranchID{}, 20)
			if err != nil || len(page) != 20 {
				t.Errorf("%d branches, %v", len(page), err)
			}
		}},
		{"a conversation", 60, func() {
			_, err := w.DB.Conversations.Conversation(t.Context(), w.Account, id)
			w.Must(err)
		}},
		{"the page of a conversation", 200, func() {
			_, err := w.DB.Conversations.ConversationPage(t.Context(), w.Account, id)
			w.Must(err)
		}},
		{"sessions", 60, func() {
			page, _, err := w.DB.Accounts.ListSessions(t.Context(), w.Account, &accounts.SessionQuery{Now: time.Now(), Limit: 20})
			if err != nil || len(page) != 0 {
				t.Errorf("%d sessions, %v", len(page), err)
			}
		}},
		{"usage records of the same time", 120, func() {
			page, _, err := w.DB.Usage.ListUsage(t.Context(), w.Account, id, nil, 20)
			if err != nil || len(page) != 20 {
				t.Errorf("%d records, %v", len(page), err)
			}
		}},
		{"starting and ending turns that edit, with held follow-ups", 900, func() {
			edit := w.Request(&id, "once more")
			edit.Branch = &protocol.BranchRequest{MessageID: turn.Spec.UserMessageID, Mode: protocol.BranchEdit}
			w.Start(edit).End(nil)
		}},
		{"the work that a deletion would end", 1500, func() {
			live := w.Start(w.Request(&id, "last"))
			work, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: id})
			if err != nil || work == nil || work.WillDelete["branches"] != 1000 || work.WillDelete["follow_ups"] != 1000 {
				t.Errorf("%+v, %v", work, err)
			}
			live.End(nil)
		}},
	} {
		wantPages(w.World, read.name, read.most, read.call)
	}
}

func TestAPurgeReadsWhatItErases(t *testing.T) {
	metered(t, aPurgeReadsWhatItErases)
}

func aPurgeReadsWhatItErases(t *testing.T, w meteredWorld) {
	turn := w.Start(w.Request(nil, "hello"))
	turn.End(nil)
	id := turn.Spec.ConversationID
	w.Database.Fill(t, `
		insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, next_sequence)
		select account_id, md5(n::text)::uuid, conversation_id, branch_id, user_message_id, assistant_message_id, '{}', 'completed', false, 2
		from turns, generate_series(1, $1::int) n where account_id = $2`, historyRows, w.Account)
	w.Database.Admin(t, `
		insert into turn_replays (account_id, turn_id, last_sequence, raw_bytes, frames)
		select account_id, turn_id, 1, 1, 'x' from turns where turn_id not in (select turn_id from turn_replays) and account_id = $1`, w.Account)
	w.analyze()
	_, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: id})
	w.Must(err)
	const limit = 200
	rows := counted(w.World, rowsReadSQL, func() {
		if done, err := w.DB.Conversations.PurgeConversation(t.Context(), w.Account, id, limit); err != nil || done {
			t.Errorf("done %v, %v", done, err)
		}
	})
	if rows > 20*limit {
		t.Errorf("erasing %d rows reads %d", limit, rows)
	}
	for done := false; !done; {
		done, err = w.DB.Conversations.PurgeConversation(t.Context(), w.Account, id, 5000)
		w.Must(err)
	}
	if left := w.Count(`select (select count(*) from turns) + (select count(*) from turn_replays)`); left != 0 {
		t.Errorf("%d rows are left", left)
	}
}

func TestDisablingAnAccountReadsOnlyWhatItStops(t *testing.T) {
	metered(t, disablingAnAccountReadsOnlyWhatItStops)
}

func disablingAnAccountReadsOnlyWhatItStops(t *testing.T, w meteredWorld) {
	turn := w.Start(w.Request(nil, "hello"))
	turn.End(nil)
	for _, sql := range []string{`
		insert into conversations (account_id, conversation_id, active_branch_id)
		select $1, md5(n::text)::uuid, md5(n::text)::uuid from generate_series(1, $2::int) n`, `
		insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, next_sequence)
		select account_id, md5(n::text)::uuid, conversation_id, branch_id, user_message_id, assistant_message_id, '{}', 'completed', false, 2
		from turns, generate_series(1, $2::int) n where account_id = $1`, `
		insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
		select $1, md5(n::text)::uuid, md5(n::text)::uuid, case n % 2 when 0 then 'held' else 'started' end, 'x', 1
		from generate_series(1, $2::int) n`} {
		w.Database.Fill(t, sql, w.Account, historyRows)
	}
	live := w.Start(w.Request(nil, "still live"))
	w.analyze()
	for name, run := range map[string]func(){
		"disabling": func() {
			w.Must(w.DB.Operator.DisableAccount(t.Context(), w.Account, time.Now(), audit.Requester{}))
		},
		"stopping": func() {
			var stopped []protocol.TurnID
			w.Must(w.DB.Operator.DisableAccount(t.Context(), w.Account, time.Now(), audit.Requester{}))
			err := w.DB.Operator.StopAccount(t.Context(), w.Account, operator.Cancel{Turn: func(_ context.Context, _ protocol.AccountID, turn protocol.TurnID) error {
				stopped = append(stopped, turn)
				return nil
			}})
			var later *river.JobSnoozeError // the job runs again to check whether the turn has ended
			if !errors.As(err, &later) || len(stopped) != 1 || stopped[0] != live.Spec.TurnID {
				t.Errorf("stopped %v, %v", stopped, err)
			}
		},
	} {
		// Both read 110 to 220 pages, by where the rows of their queue are; reading the history takes thousands.
		wantPages(w.World, name, 400, func() {
			// A queue that waits, which disabling holds.
			w.Database.Admin(t, `
				insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
				select account_id, gen_random_uuid(), conversation_id, 'queued', 'x', 1 from conversations
				where account_id = $1 and conversation_id = md5('7')::uuid`, w.Account)
			run()
			if waiting := w.Count(`select count(*) from follow_ups where state = 'queued'`); waiting != 0 {
				t.Errorf("%d items are not held", waiting)
			}
			w.Must(w.DB.Operator.EnableAccount(t.Context(), w.Account, audit.Requester{}))
		})
	}
}

// Feedback is searched among a bounded number of messages, even if no turn of the branch ever succeeded.
func TestFeedbackReadsTheEndOfTheBranchOnly(t *testing.T) {
	metered(t, feedbackReadsTheEndOfTheBranchOnly)
}

func feedbackReadsTheEndOfTheBranchOnly(t *testing.T, w meteredWorld) {
	turn := w.Start(w.Request(nil, "hello"))
	turn.End(nil)
	id := turn.Spec.ConversationID
	grow := func(status string) {
		w.Database.Fill(t, `
			with head as (
				update branches set head_depth = head_depth + 2 * $3::int where account_id = $1 and conversation_id = $2 returning branch_id, head_depth - 2 * $3::int as depth
			)
			insert into messages (account_id, message_id, conversation_id, branch_id, depth, role, status, parts)
			select $1, gen_random_uuid(), $2, branch_id, depth + n, case n % 2 when 0 then 'assistant' else 'user' end, case n % 2 when 0 then $4 else 'complete' end, '[]'
			from head, generate_series(1, 2 * $3::int) n`, w.Account, id, historyRows, status)
		w.analyze()
	}
	rate := func(code protocol.Code) func() {
		return func() {
			if _, err := w.DB.Feedback.Set(t.Context(), w.Account, id, nil, nil); err != nil && protocol.CodeOf(err) != code {
				t.Error(err)
			}
		}
	}
	grow("failed")
	wantPages(w.World, "feedback without a response that could be rated", 2_500, rate(protocol.CodeConflict))
	grow("complete")
	wantPages(w.World, "feedback", 60, rate(""))
}
