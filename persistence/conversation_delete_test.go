package persistence_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

const canary = "canary-8c1f"

// purge erases until nothing is left.
func purge(t testing.TB, db *persistence.DB, account protocol.AccountID, id protocol.ConversationID, limit int) (calls int) {
	t.Helper()
	for {
		calls++
		done, err := db.PurgeConversation(t.Context(), account, id, limit)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return calls
		}
	}
}

// fill gives a conversation something of every kind, each with the text in it.
func fill(t testing.TB, db *persistence.DB, account protocol.AccountID, id protocol.ConversationID, text string) protocol.TurnID {
	t.Helper()
	said := say(t, db, account, id, text, text, text, text)
	if _, err := db.CreateBranch(t.Context(), account, id, &protocol.BranchRequest{MessageID: said[2], Mode: protocol.BranchEdit}, text); err != nil {
		t.Fatal(err)
	}
	say(t, db, account, id, text, text)
	part := protocol.NewPartID()
	turn, _ := liveTurn(t, db, account, id, text,
		started(id), &protocol.AnswerStarted{PartID: part, Format: "markdown"},
		&protocol.AnswerDelta{PartID: part, Delta: text}, &protocol.AnswerCompleted{PartID: part, Text: text})
	addFollowUps(t, db, account, id, protocol.FollowUpQueued, protocol.FollowUpHeld, protocol.FollowUpStarted)
	if _, err := db.PutDraft(t.Context(), account, id, text, nil, nil); err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	batch.Queue(`update follow_ups set content = $1 where conversation_id = $2`, text, id)
	batch.Queue(`insert into turn_records (account_id, turn_id, kind, key, sequence, body) values ($1, $2, 'step', '1', 1, to_json($3::text))`, account, turn, text)
	batch.Queue(`insert into turn_replays (account_id, turn_id, last_sequence, raw_bytes, frames) values ($1, $2, 4, 1, $3)`, account, turn, []byte(text))
	location := "/conversations/" + id.String()
	for i, kept := range []struct {
		path, location string
		turn           *protocol.TurnID
	}{
		{"/chat", "", &turn},
		{"/chat", location + "/follow-ups", nil},
		{"/conversations", location, nil},
		{"/conversations/conv_original/branches", location, nil},
		{location + "/branches", "/conversations/conv_fork", nil},
		{location, "", nil},
	} {
		batch.Queue(`insert into idempotency (account_id, path, key_hash, body_hash, status, headers, body, resource_id) values ($1, $2, $3, '', 201, $4, $5, $6)`,
			account, kept.path, []byte(fmt.Sprint(text, i)), map[string]string{"Location": kept.location}, []byte(text), kept.turn)
	}
	batch.Queue(`insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, usage)
		values ($1, $2, 'server', 'turn', 1, 'turn', $3, $4, 'coding', '{"input_tokens": 5, "output_tokens": 7}')`, account, protocol.NewUsageID(), id, turn)
	if err := db.Send(t.Context(), account, batch); err != nil {
		t.Fatal(err)
	}
	return turn
}

// wantNowhere looks for a text in every row of every table, in bytes too.
func wantNowhere(t testing.TB, database pgtest.Database, text string) {
	t.Helper()
	database.Admin(t, fmt.Sprintf(`
		do $$
		declare
			place text;
			found bigint;
		begin
			for place in select format('%%I.%%I', schemaname, tablename) from pg_tables where schemaname in ('public', 'river') loop
				execute format('select count(*) from %%s x where x::text like any (array[''%%%%%[1]s%%%%'', ''%%%%%[2]s%%%%''])', place) into found;
				if found > 0 then
					raise exception '%% rows of %% hold the text', found, place;
				end if;
			end loop;
		end $$`, text, hex.EncodeToString([]byte(text))))
}

func TestDeletionHidesAtOnceAndAPurgeThatCrashesErasesAll(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	kept := begin(t, db, account, "kept").ConversationID
	keptTurn := fill(t, db, account, kept, "kept-text")
	gone := begin(t, db, account, canary).ConversationID
	if _, err := db.PutDraft(t.Context(), account, gone, canary, nil, nil); err != nil {
		t.Fatal(err)
	}
	turn := fill(t, db, account, gone, canary)

	live, err := db.DeleteConversation(t.Context(), account, &persistence.Deletion{ConversationID: gone})
	if err != nil || live == nil || live.TurnID != turn {
		t.Fatalf("with a live turn: %+v (%v)", live, err)
	}
	if w := live.WillDelete; w["messages"] != 8 || w["branches"] != 2 || w["follow_ups"] != 2 || w["live_turns"] != 1 {
		t.Errorf("will delete %v", w)
	}
	read(t, db, account, gone)
	endTurn(t, db, account, turn, canary)
	stale := int64(77)
	_, err = db.DeleteConversation(t.Context(), account, &persistence.Deletion{ConversationID: gone, Version: &stale})
	wantCode(t, err, protocol.CodeStaleVersion)
	if live, err = db.DeleteConversation(t.Context(), account, &persistence.Deletion{ConversationID: gone}); err != nil || live != nil {
		t.Fatalf("%+v (%v)", live, err)
	}
	wantHidden(t, db, account, gone, turn)

	// The purge is killed again and again: each attempt ends in the middle of a statement or between two batches.
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*300*time.Microsecond)
		done, err := db.PurgeConversation(ctx, account, gone, 3)
		cancel()
		if err == nil && done {
			break
		}
	}
	if calls := purge(t, db, account, gone, 3); calls != 1 {
		t.Errorf("%d calls to find that nothing is left", calls)
	}
	wantNowhere(t, database, canary)
	left, err := persistence.Row(t.Context(), db, account, pgx.RowTo[int],
		`select count(*) from usage_records where conversation_id = $1`, gone)
	if err != nil || left != 1 {
		t.Errorf("%d usage records left (%v)", left, err)
	}
	_, _, err = db.PutConversation(t.Context(), account, gone, &persistence.ConversationWrite{}, nil)
	wantCode(t, err, protocol.CodeNotFound)

	page, err := db.Messages(t.Context(), account, &persistence.MessageQuery{ConversationID: kept, Limit: 100})
	if err != nil || len(page.Messages) != 6 || page.Messages[5].CoversSequence != 4 || *page.Messages[5].TurnID != keptTurn {
		t.Errorf("the other conversation is %+v (%v)", page, err)
	}
	counts, err := persistence.Row(t.Context(), db, account, pgx.RowTo[[]int], `select array[
		(select count(*) from turn_records), (select count(*) from turn_replays), (select count(*) from turn_events),
		(select count(*) from idempotency), (select count(*) from follow_ups), (select count(*) from branches)]::int[]`)
	if err != nil || fmt.Sprint(counts) != "[1 1 4 6 3 2]" {
		t.Errorf("the other conversation keeps %v (%v)", counts, err)
	}
}

// wantHidden asks for a deleted conversation in every way there is.
func wantHidden(t *testing.T, db *persistence.DB, account protocol.AccountID, id protocol.ConversationID, turn protocol.TurnID) {
	t.Helper()
	ctx := t.Context()
	message, err := persistence.Row(ctx, db, account, pgx.RowTo[protocol.MessageID], `select assistant_message_id from turns where turn_id = $1`, turn)
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func() error{
		"conversation": func() error { _, err := db.Conversation(ctx, account, id); return err },
		"page":         func() error { _, err := db.ConversationPage(ctx, account, id); return err },
		"put": func() error {
			_, _, err := db.PutConversation(ctx, account, id, &persistence.ConversationWrite{}, nil)
			return err
		},
		"title": func() error { _, err := db.SetTitle(ctx, account, id, "x", nil); return err },
		"read":  func() error { _, err := db.MarkRead(ctx, account, id, message); return err },
		"draft": func() error { _, err := db.PutDraft(ctx, account, id, "x", nil, nil); return err },
		"messages": func() error {
			_, err := db.Messages(ctx, account, &persistence.MessageQuery{ConversationID: id, Limit: 1})
			return err
		},
		"around": func() error {
			_, err := db.Messages(ctx, account, &persistence.MessageQuery{ConversationID: id, Around: &message, Limit: 1})
			return err
		},
		"message":    func() error { _, err := db.GetMessage(ctx, account, message); return err },
		"branches":   func() error { _, _, err := db.ListBranches(ctx, account, id, protocol.BranchID{}, 1); return err },
		"fork":       func() error { _, err := db.ForkConversation(ctx, account, id, message, ""); return err },
		"follow-ups": func() error { _, _, err := db.ListFollowUps(ctx, account, id, true, nil, 1); return err },
		"usage":      func() error { _, _, err := db.ListUsage(ctx, account, id, nil, 1); return err },
		"use":        func() error { _, err := db.RecordUsage(ctx, account, id, "k", 1, "u", nil); return err },
		"delete": func() error {
			_, err := db.DeleteConversation(ctx, account, &persistence.Deletion{ConversationID: id})
			return err
		},
	} {
		if err := ask(); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s of a deleted conversation: %v", name, err)
		}
	}
	if set, err := db.SetAutoTitle(ctx, account, id, "x"); err != nil || set {
		t.Errorf("a deleted conversation got a title (%v)", err)
	}
	list, _, err := db.ListConversations(ctx, account, &persistence.ConversationFilter{}, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.ConversationID == id {
			t.Error("a deleted conversation is listed")
		}
	}
	queued, err := persistence.Row(ctx, db, account, pgx.RowTo[int], `select count(*) from follow_ups where conversation_id = $1 and state in ('queued', 'held')`, id)
	if err != nil || queued != 0 {
		t.Errorf("%d follow-ups still wait (%v)", queued, err)
	}
}

func TestNothingIsPurgedThatWasNotDeletedOrStillLives(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := begin(t, db, account, "").ConversationID
	say(t, db, account, id, "one", "two")
	if _, err := db.PurgeConversation(t.Context(), account, id, 100); err == nil {
		t.Error("purged what was not deleted")
	}
	turn, _ := liveTurn(t, db, account, id, "three")
	if _, err := db.Exec(t.Context(), account, `update conversations set deleted_at = now() where conversation_id = $1`, id); err != nil {
		t.Fatal(err)
	}
	_, err := db.PurgeConversation(t.Context(), account, id, 100)
	wantCode(t, err, protocol.CodeTurnInProgress)
	endTurn(t, db, account, turn, "four")
	purge(t, db, account, id, 100)
	left, err := persistence.Row(t.Context(), db, account, pgx.RowTo[int], `select count(*) from messages`)
	if err != nil || left != 0 {
		t.Errorf("%d messages left (%v)", left, err)
	}
}

func TestDeletionEnqueuesItsPurge(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	id := begin(t, db, account, "").ConversationID
	if _, err := db.DeleteConversation(t.Context(), account, &persistence.Deletion{ConversationID: id}); err != nil {
		t.Fatal(err)
	}
	database.Admin(t, fmt.Sprintf(`do $$ begin
		if not exists (select from river.river_job where kind = 'purge_conversation' and args ->> 'conversation_id' = '%s') then
			raise exception 'no job';
		end if;
	end $$`, id))
}

// cancelled stores a cancel of the turn.
func (l *actedTurn) cancelled() {
	l.w.Helper()
	a := l.chunk(1)
	a.Frames = l.event(nil, a.First, &protocol.TurnCancelRequested{By: protocol.CancelledByDeletion, Scope: protocol.CancelTurnAndFollowUps})
	a.Records = []protocol.TurnRecord{{Kind: protocol.RecordCancel, Sequence: a.First, Body: []byte(`{}`)}}
	a.State, a.Accepts = protocol.TurnCancelling, false
	l.w.must(l.w.append(a))
	l.stored(a)
}

func TestAConversationIsDeletedWhileItsCancelledTurnStillEnds(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	id := turn.spec.ConversationID
	later := w.request(&id, "later")
	later.IfBusy = protocol.BusyQueue
	if result, err := w.try(later); err != nil || result.FollowUp == nil {
		t.Fatalf("queueing: %+v, %v", result, err)
	}
	other := protocol.NewTurnID()
	for what, named := range map[string]*protocol.TurnID{"no": nil, "another": &other, "a turn whose cancel is not stored as": &turn.spec.TurnID} {
		live, err := w.db.DeleteConversation(t.Context(), w.account, &persistence.Deletion{ConversationID: id, Cancelled: named})
		if err != nil || live == nil || live.TurnID != turn.spec.TurnID {
			t.Fatalf("with %s cancelled turn: %+v, %v", what, live, err)
		}
	}
	turn.cancelled()
	live, err := w.db.DeleteConversation(t.Context(), w.account, &persistence.Deletion{ConversationID: id, Cancelled: &turn.spec.TurnID})
	if err != nil || live != nil {
		t.Fatalf("deleting: %+v, %v", live, err)
	}
	wantHidden(t, w.db, w.account, id, turn.spec.TurnID)
	_, err = w.try(w.request(&id, "again"))
	wantCode(t, err, protocol.CodeNotFound)
	_, err = w.db.PurgeConversation(t.Context(), w.account, id, 100)
	wantCode(t, err, protocol.CodeTurnInProgress)
	turn.append(2)
	stored, err := w.turns.LoadTurn(t.Context(), w.account, turn.spec.TurnID)
	if err != nil || !bytes.Equal(stored.Frames, turn.frames) {
		t.Errorf("the log of the turn cannot be adopted: %v", err)
	}
	if started := turn.end(func(f *protocol.TurnFinish) {
		f.Parked = []protocol.ParkedInput{{FollowUpID: protocol.NewFollowUpID(), Text: "returned"}}
	}); started != nil {
		t.Errorf("the end started %+v", started.Spec)
	}
	purge(t, w.db, w.account, id, 100)
	if left := w.count(`select (select count(*) from turns) + (select count(*) from messages) + (select count(*) from follow_ups) + (select count(*) from turn_events)`); left != 0 {
		t.Errorf("%d rows are left", left)
	}
}

func TestATurnThatStartsDuringADeletionIsNotLiveInADeletedConversation(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		id := begin(t, w.db, w.account, "").ConversationID
		type outcome struct {
			result *protocol.TurnStartResult
			err    error
		}
		started := make(chan outcome, 1)
		go func() {
			result, err := w.try(w.request(&id, "hello"))
			started <- outcome{result, err}
		}()
		live, err := w.db.DeleteConversation(t.Context(), w.account, &persistence.Deletion{ConversationID: id})
		w.must(err)
		start := <-started
		switch deleted := live == nil; {
		case deleted && protocol.CodeOf(start.err) != protocol.CodeNotFound:
			t.Fatalf("a turn began in a deleted conversation: %+v, %v", start.result, start.err)
		case !deleted:
			w.must(start.err)
			w.alive(start.result.Spec, start.result.Begin).end(nil)
		}
	}
}
