package turns_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap/zaptest"

	"turnstone/persistence"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/providers/embedded"
)

// The cost of a read must depend on the page that it returns, not on the history behind it. These tests create a
// history and count the Postgres pages that one call touches. That number depends neither on the host computer nor on its
// load.

// historyRows is the number of rows of each history. A Postgres page holds at most about a hundred such rows.
const historyRows = 20_000

// meteredWorld is a world whose requests use one connection, so that the server's statistics show what a call has
// read.
type meteredWorld struct {
	*storetest.World
	stale bool // the planner has statistics of small accounts only
}

// smallAccountsSQL creates accounts with one to four conversations. Each conversation has two messages, and one row of
// every other kind: branch, turn, session, follow-up and so on.
const smallAccountsSQL = `
with ids as materialized (
	select md5('small' || a)::uuid as account, md5(a || '/' || n)::uuid as id, md5('answer' || a || '/' || n)::uuid as answer, n
	from generate_series(1, 800) a, generate_series(1, 1 + a % 4) n),
accounts as (insert into accounts (account_id, email, email_key, display_name) select account, account::text, account::text, '' from ids where n = 1),
conversations as (insert into conversations (account_id, conversation_id, active_branch_id) select account, id, id from ids),
branches as (insert into branches (account_id, branch_id, conversation_id, head_message_id, head_depth) select account, id, id, answer, 2 from ids),
segments as (insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth) select account, id, id, 1, 2147483647 from ids),
messages as (
	insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts)
	select account, id, id, id, 1, null, 'user', 'complete', '[]'::json from ids
	union all select account, answer, id, id, 2, id, 'assistant', 'complete', '[]'::json from ids),
turns as (
	insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, next_sequence)
	select account, id, id, id, id, answer, '{}', 'completed', false, 2 from ids),
events as (insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames) select account, id, 1, 1, 1, 'x' from ids),
replays as (insert into turn_replays (account_id, turn_id, last_sequence, raw_bytes, frames) select account, id, 1, 1, 'x' from ids),
sessions as (
	insert into sessions (token_hash, session_id, account_id, expires_at)
	select sha256(id::text::bytea), id, account, now() + interval '1 day' from ids),
follow_ups as (
	insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position) select account, id, id, 'held', '', 1 from ids)
insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, occurred_at)
select account, id, 'server', 'x', 1, 'x', id, '2026-01-01' from ids`

// noAutovacuumSQL stops autovacuum, which reads pages, too.
const noAutovacuumSQL = `do $$ declare name text; begin
	for name in select c.relname from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' loop
		execute format('alter table %I set (autovacuum_enabled = off, toast.autovacuum_enabled = off)', name);
	end loop;
	end $$`

var (
	noAccounts    = pgtest.Prepare(noAutovacuumSQL)
	smallAccounts = pgtest.Prepare(noAutovacuumSQL, smallAccountsSQL, `vacuum analyze`)
)

// metered runs a test with planner statistics of the rows that the test creates, and twice with statistics of small
// accounts only: with custom plans and with generic plans. Accounts differ in size. Postgres plans for the largest account
// as for the others, and estimates the same cost for an index that leads to all rows of a conversation as for an index
// that leads to a single row.
func metered(t *testing.T, test func(t *testing.T, w meteredWorld)) {
	t.Helper()
	for name, v := range map[string]struct {
		database func(testing.TB) pgtest.Database
		stale    bool
		mode     string
	}{
		"current statistics":           {noAccounts, false, "auto"},
		"statistics of small accounts": {smallAccounts, true, "force_custom_plan"},
		"generic plans":                {smallAccounts, true, "force_generic_plan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := v.database(t)
			database.Admin(t, `do $$ begin execute format('alter database %I set plan_cache_mode = `+v.mode+`', current_database()); end $$`)
			db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, MaxConns: 1, Objects: database.Objects(t), Logger: zaptest.NewLogger(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			test(t, meteredWorld{storetest.NewWorldOn(t, database, db), v.stale})
		})
	}
}

// analyze vacuums all tables. It also updates the planner's statistics, unless the test needs those of small accounts.
func (w *meteredWorld) analyze() {
	w.Helper()
	if w.stale {
		w.Database.Admin(w, `vacuum`)
	} else {
		w.Database.Admin(w, `vacuum analyze`)
	}
}

const (
	flushStatsSQL = `select pg_stat_force_next_flush()`
	pagesReadSQL  = `
		select sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0)
			+ coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0) + coalesce(tidx_blks_read, 0) + coalesce(tidx_blks_hit, 0))::int
		from pg_statio_user_tables where schemaname = 'public'`
	rowsReadSQL = `
		select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int from pg_stat_user_tables where schemaname = 'public'`
)

// counted returns by how much a call raises a statistic of the server. Other connections report their statistics when
// they end, so counted first waits until they have ended.
func counted(w *storetest.World, statisticSQL string, call func()) int {
	w.Helper()
	storetest.Eventually(w.T, func() bool {
		return w.Count(`select count(*) from pg_stat_activity where datname = current_database() and usename = '`+embedded.Superuser+`'`) == 0
	})
	read := func() int {
		for range 2 { // the first flush reports the statistics of the call, which used this connection
			_, err := pg.Rows(w.Context(), w.DB.DB, w.Account, pgx.RowTo[any], flushStatsSQL)
			w.Must(err)
		}
		return w.Count(statisticSQL)
	}
	call() // the first call also plans its statements and reads catalogs
	before := read()
	call()
	return read() - before
}

// wantPages fails when a call touches more than most pages.
func wantPages(w *storetest.World, what string, most int, call func()) {
	w.Helper()
	if pages := counted(w, pagesReadSQL, call); pages > most {
		w.Errorf("%s: %d pages were read, want at most %d", what, pages, most)
	} else {
		w.Logf("%s: %d pages", what, pages)
	}
}

func TestCheckingTheSessionsOfOpenStreamsReadsOnlyThese(t *testing.T) {
	metered(t, checkingTheSessionsOfOpenStreamsReadsOnlyThese)
}

func checkingTheSessionsOfOpenStreamsReadsOnlyThese(t *testing.T, w meteredWorld) {
	w.Database.Fill(t, `insert into sessions (token_hash, session_id, account_id, expires_at)
		select sha256(n::text::bytea), gen_random_uuid(), $1, now() + interval '1 day' from generate_series(1, $2::int) n`, w.Account, historyRows)
	w.analyze()
	sessions, err := pg.Rows(t.Context(), w.DB.DB, pg.NoAccount, pgx.RowTo[protocol.SessionID], `select session_id from sessions where account_id = $1 limit 3`, w.Account)
	w.Must(err)
	owners := map[protocol.SessionID]protocol.AccountID{}
	for _, session := range sessions {
		owners[session] = w.Account
	}
	wantPages(w.World, "the recheck of 3 sessions", 20, func() {
		live, err := w.DB.Accounts.LiveSessions(t.Context(), owners, time.Now())
		w.Must(err)
		if len(live) != len(sessions) {
			t.Errorf("%d sessions are live, want %d", len(live), len(sessions))
		}
	})
}

func TestReadingAQueueSkipsStartedFollowUps(t *testing.T) {
	metered(t, readingAQueueSkipsStartedFollowUps)
}

func readingAQueueSkipsStartedFollowUps(t *testing.T, w meteredWorld) {
	live := w.Start(w.Request(nil, "hello"))
	conversation := live.Spec.ConversationID
	w.Database.Fill(t, `insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
		select $1, gen_random_uuid(), $2, case n % 2 when 0 then 'started' else 'cancelled' end, 'x', n from generate_series(1, $3::int) n`,
		w.Account, conversation, historyRows)
	queue := func() *protocol.FollowUp {
		start := w.Request(&conversation, "later")
		start.IfBusy = protocol.BusyQueue
		result, err := w.Try(start)
		w.Must(err)
		return result.FollowUp
	}
	item := queue()
	w.analyze()
	wantPages(w.World, "the page of a conversation", 60, func() {
		page, err := w.DB.Conversations.ConversationPage(t.Context(), w.Account, conversation)
		w.Must(err)
		if page.FollowUps[0].FollowUpID != item.FollowUpID {
			t.Error("the page does not show the queue")
		}
	})
	wantPages(w.World, "the list", 30, func() {
		page, err := w.DB.FollowUps.ListFollowUps(t.Context(), w.Account, conversation, false, nil, 20)
		w.Must(err)
		if len(page.Items) == 0 || page.Items[0].FollowUpID != item.FollowUpID || page.Next != nil {
			t.Errorf("the list has %d items", len(page.Items))
		}
	})
	wantPages(w.World, "a page of all follow-ups", 60, func() {
		page, err := w.DB.FollowUps.ListFollowUps(t.Context(), w.Account, conversation, true, nil, 20)
		w.Must(err)
		if len(page.Items) != 20 || page.Next == nil {
			t.Errorf("the list has %d items", len(page.Items))
		}
	})
	wantPages(w.World, "queueing", 150, func() { queue() })
	wantPages(w.World, "changing an item", 80, func() {
		item.Version++
		_, _, err := w.DB.FollowUps.ChangeFollowUp(t.Context(), w.Change(conversation, item, protocol.FollowUpHeld), w.Runner)
		if err != nil && protocol.CodeOf(err) != protocol.CodeStaleVersion {
			t.Error(err)
		}
	})
}

func TestAPageOfMessagesReadsOnlyWhatALiveTurnAppendedSince(t *testing.T) {
	metered(t, aPageOfMessagesReadsOnlyWhatALiveTurnAppendedSince)
}

func aPageOfMessagesReadsOnlyWhatALiveTurnAppendedSince(t *testing.T, w meteredWorld) {
	live := w.Start(w.Request(nil, "hello"))
	part := protocol.DerivePartID(live.Spec.TurnID, 1)
	started := live.Chunk(1)
	started.Frames = live.Event(nil, started.First, &protocol.AnswerStarted{PartID: part, Format: "markdown"})
	w.Must(w.Append(started))
	live.Stored(started)
	for range 300 {
		live.Append(3)
	}
	query := &conversations.MessageQuery{ConversationID: live.Spec.ConversationID, Limit: 20}
	read := func() protocol.Message {
		page, err := w.DB.Conversations.Messages(t.Context(), w.Account, query)
		w.Must(err)
		return page.Messages[len(page.Messages)-1]
	}
	check := func(m protocol.Message) {
		t.Helper()
		var whole protocol.Fold
		covers, err := whole.FoldFrames(0, live.Frames)
		w.Must(err)
		if m.CoversSequence != covers || len(m.Parts) != 1 || m.Parts[0].Text != whole.Text(part) || m.Status != protocol.MessageStreaming {
			t.Errorf("the page covers %d of %d events", m.CoversSequence, covers)
		}
	}
	check(read())
	live.Append(3)
	// Most rows of a day's partition belong to other turns.
	w.Database.Fill(t, `insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
		select account_id, (left(turn_id::text, 14) || '7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, 1, 1, repeat('x', 100)::bytea
		from turns, generate_series(1, $1::int) n where account_id = $2`, historyRows, w.Account)
	w.analyze()
	if rows := counted(w.World, rowsReadSQL, func() { check(read()) }); rows > 20 {
		t.Errorf("a page with a live turn of 303 rows reads %d rows", rows)
	}
	live.Append(3)
	found, err := w.DB.Conversations.GetMessage(t.Context(), w.Account, live.Spec.AssistantMessageID)
	w.Must(err)
	check(*found)
	// Another node has not read the message before.
	other := w.Database.Open(t)
	found, err = other.Conversations.GetMessage(t.Context(), w.Account, live.Spec.AssistantMessageID)
	w.Must(err)
	check(*found)
	live.End(nil)
	if m := read(); m.Status != protocol.MessageComplete || m.CoversSequence != 0 || m.Parts[0].Text != "answer" {
		t.Errorf("after the end: %+v", m)
	}
}

func TestReadersOfOneStreamingMessageAgree(t *testing.T) {
	w := storetest.NewWorld(t)
	live := w.Start(w.Request(nil, "hello"))
	part := protocol.DerivePartID(live.Spec.TurnID, 1)
	started := live.Chunk(1)
	started.Frames = live.Event(nil, started.First, &protocol.AnswerStarted{PartID: part, Format: "markdown"})
	w.Must(w.Append(started))
	live.Stored(started)
	texts := map[int64]string{started.Last: ""} // by the last sequence that they cover
	for range 30 {
		next := live.Chunk(2)
		var whole protocol.Fold
		_, err := whole.FoldFrames(0, append(bytes.Clone(live.Frames), next.Frames...))
		w.Must(err)
		texts[next.Last] = whole.Text(part)
		const readers = 4
		messages := make(chan *protocol.Message, readers)
		for range readers { // before, during and after the append of the next chunk
			go func() {
				m, err := w.DB.Conversations.GetMessage(t.Context(), w.Account, live.Spec.AssistantMessageID)
				if err != nil {
					t.Error(err)
					m = &protocol.Message{}
				}
				messages <- m
			}()
		}
		w.Must(w.Append(next))
		live.Stored(next)
		for range readers {
			m := <-messages
			if text, known := texts[m.CoversSequence]; !known || len(m.Parts) != 1 || m.Parts[0].Text != text {
				t.Errorf("a message that covers %d has other text than the log", m.CoversSequence)
			}
		}
	}
}

func TestTheEndOfALongReplayIsReadWithoutItsBeginning(t *testing.T) {
	metered(t, theEndOfALongReplayIsReadWithoutItsBeginning)
}

func theEndOfALongReplayIsReadWithoutItsBeginning(t *testing.T, w meteredWorld) {
	live := w.Start(w.Request(nil, "hello"))
	big := live.Chunk(1)
	for sequence := big.First; sequence < big.First+40; sequence++ { // 2.4 MB that compress to no less than half
		big.Last = sequence
		if sequence > big.First {
			big.Frames = live.Event(big.Frames, sequence, &protocol.AnswerDelta{PartID: protocol.DerivePartID(live.Spec.TurnID, 1), Delta: noise(60_000)})
		}
	}
	w.Must(w.Append(big))
	live.Stored(big)
	live.End(nil)
	last := live.Next - 1
	wantPages(w.World, "the last event", 60, func() {
		frames, end, err := w.Turns.TurnFrames(t.Context(), w.Account, live.Spec.TurnID, last-1, 1<<20)
		w.Must(err)
		if end != last || bytes.Count(frames, []byte{'\n'}) != 1 || !bytes.HasSuffix(live.Frames, frames) {
			t.Errorf("read %d bytes up to %d", len(frames), end)
		}
	})
	for after := range last {
		want := protocol.SkipFrames(live.Frames, after)
		if got := live.Read(after, 100<<10); !bytes.Equal(got, want) {
			t.Fatalf("after %d: %d bytes, want %d", after, len(got), len(want))
		}
	}
	// An older version stored replays without blocks.
	w.Database.Admin(t, `update turn_replays set block_ends = null, block_offsets = null`)
	if got := live.Read(0, 100<<10); !bytes.Equal(got, live.Frames) {
		t.Error("a replay without blocks is read differently")
	}
}

func TestAPageReadsNoMessagesBeyondItsByteCap(t *testing.T) {
	metered(t, aPageReadsNoMessagesBeyondItsByteCap)
}

func aPageReadsNoMessagesBeyondItsByteCap(t *testing.T, w meteredWorld) {
	live := w.Start(w.Request(nil, "hello"))
	conversation := live.Spec.ConversationID
	live.End(nil)
	const messages = 40
	w.Database.Fill(t, `insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts)
		select account_id, gen_random_uuid(), conversation_id, branch_id, 2 + n, gen_random_uuid(), 'user', 'complete', json_build_array(json_build_object(
			'type', 'text', 'text', (select string_agg(sha256((n::text || k)::bytea)::text, '') from generate_series(1, 6000) k)))
		from branches, generate_series(1, $1::int) n where account_id = $2`, messages, w.Account) // 400 KB each, which compress to half
	w.Database.Fill(t, `insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts)
		select account_id, gen_random_uuid(), conversation_id, branch_id, 1000 + n, gen_random_uuid(), 'user', 'complete', '[]'
		from branches, generate_series(1, $1::int) n where account_id = $2`, historyRows, w.Account)
	w.Database.Admin(t, `update branches set head_depth = 2 + $1 where account_id = $2`, messages, w.Account)
	w.analyze()
	around, err := pg.Row(t.Context(), w.DB.DB, w.Account, pgx.RowTo[protocol.MessageID], `select message_id from messages where depth = 20`)
	w.Must(err)
	for what, query := range map[string]*conversations.MessageQuery{
		"older": {}, "newer": {Newer: true, After: 2}, "around": {Around: &around},
	} {
		query.ConversationID, query.Limit = conversation, messages
		read := func() {
			page, err := w.DB.Conversations.Messages(t.Context(), w.Account, query)
			w.Must(err)
			if len(page.Messages) != 3 || page.Last-page.First != 2 {
				t.Errorf("%s: %d messages", what, len(page.Messages))
			}
		}
		if rows := counted(w.World, rowsReadSQL, read); rows > 60 {
			t.Errorf("%s: a page of 3 messages reads %d rows", what, rows)
		}
		wantPages(w.World, what, 500, read) // two reads of each text
	}
	w.Database.Admin(t, `insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
		select m.account_id, gen_random_uuid(), m.conversation_id, 'held', m.parts ->> 0, m.depth from messages m where m.depth between 3 and 2 + $1`, messages)
	w.analyze()
	wantPages(w.World, "follow-ups", 600, func() {
		page, err := w.DB.FollowUps.ListFollowUps(t.Context(), w.Account, conversation, true, nil, messages)
		w.Must(err)
		if len(page.Items) != 2 || page.Next == nil {
			t.Errorf("%d follow-ups", len(page.Items))
		}
	})
}

// noise returns n bytes of text that compresses to no less than half.
func noise(n int) string {
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprint(&b, protocol.NewTurnID())
	}
	return b.String()[:n]
}

func TestReadingTheModelContextReadsOnlyItsMessages(t *testing.T) {
	metered(t, readingTheModelContextReadsOnlyItsMessages)
}

func readingTheModelContextReadsOnlyItsMessages(t *testing.T, w meteredWorld) {
	turn := w.Start(w.Request(nil, "hello"))
	turn.End(nil)
	s := turn.Spec
	// A path of many messages. Each of the last ones is on its own branch.
	const branches = 2000
	w.Database.Fill(t, `
		with path as materialized (
			select n as depth, case when n <= $4 - $5 then $3 else md5('branch' || n)::uuid end as branch_id, md5('message' || n)::uuid as message_id
			from generate_series(3, $4::int) n
		), made as (
			insert into branches (account_id, branch_id, conversation_id)
			select $1, branch_id, $2 from path where branch_id <> $3 returning 1
		), own as (update branch_segments set to_depth = $4 - $5 where branch_id = $3
		), segments as (
			insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
			select $1, head.branch_id, p.branch_id, case when p.branch_id = $3 then 1 else p.depth end, p.depth
			from (select branch_id from path where depth = $4) head, path p where p.depth >= $4 - $5
		)
		insert into messages (account_id, message_id, conversation_id, branch_id, depth, role, status, parts)
		select $1, message_id, $2, branch_id, depth, 'user', 'complete', json_build_array(json_build_object('type', 'text', 'text', depth::text)) from path`,
		w.Account, s.ConversationID, s.BranchID, historyRows, branches)
	w.analyze()
	id := func(depth int) protocol.MessageID {
		found, err := pg.Row(t.Context(), w.DB.DB, w.Account, pgx.RowTo[protocol.MessageID],
			`select message_id from messages where account_id = $1 and depth = $2`, w.Account, depth)
		w.Must(err)
		return found
	}
	head, err := pg.Row(t.Context(), w.DB.DB, w.Account, pgx.RowTo[protocol.BranchID],
		`select branch_id from messages where account_id = $1 and depth = $2`, w.Account, historyRows)
	w.Must(err)
	for _, last := range []int{150, historyRows - branches + 20, historyRows} {
		message := id(last)
		wantPages(w.World, fmt.Sprintf("the 100 messages before %d", last), 600, func() {
			w.Turns.ForgetHistories()
			messages, more, err := w.Turns.History(t.Context(), w.Account, s.ConversationID, head, message, 100, 1<<20)
			w.Must(err)
			if len(messages) != 100 || !more || messages[0].Parts[0].Text != fmt.Sprint(last-99) || messages[99].Parts[0].Text != fmt.Sprint(last) {
				t.Errorf("%d messages, more %v: %+v", len(messages), more, messages[0])
			}
		})
	}
}

func TestAPageOfALongLogReadsOnlyItsRows(t *testing.T) {
	metered(t, aPageOfALongLogReadsOnlyItsRows)
}

func aPageOfALongLogReadsOnlyItsRows(t *testing.T, w meteredWorld) {
	live := w.Start(w.Request(nil, "hello"))
	w.Database.Fill(t, `
		insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
		select account_id, turn_id, n, n, 1, convert_to('{"sequence":' || n || '}' || chr(10), 'UTF8')
		from turns, generate_series(2, $1::int) n where account_id = $2`, historyRows, w.Account)
	w.analyze()
	for _, after := range []int64{1, historyRows / 2} {
		rows := counted(w.World, rowsReadSQL, func() {
			frames, last, err := w.Turns.TurnFrames(t.Context(), w.Account, live.Spec.TurnID, after, 1<<20)
			w.Must(err)
			if n := bytes.Count(frames, []byte{'\n'}); n != 1000 || last != after+1000 {
				t.Errorf("after %d: %d events up to %d", after, n, last)
			}
		})
		if rows > 1100 {
			t.Errorf("a page of 1,000 rows reads %d", rows)
		}
	}
}
