package conversations_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const canary = "canary-8c1f"

// purge calls PurgeConversation until it reports that it is done, and returns the number of calls.
func purge(t testing.TB, db *persistence.Stores, account protocol.AccountID, id protocol.ConversationID, limit int) (calls int) {
	t.Helper()
	for {
		calls++
		done, err := db.Conversations.PurgeConversation(t.Context(), account, id, limit)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return calls
		}
	}
}

// fill stores rows of every kind that belongs to a conversation, each with the text in it, and returns the
// conversation's live turn.
func fill(t testing.TB, db *persistence.Stores, account protocol.AccountID, id protocol.ConversationID, text string) protocol.TurnID {
	t.Helper()
	messages := addMessages(t, db, account, id, text, text, text, text)
	if _, err := db.Conversations.CreateBranch(t.Context(), account, id, &protocol.BranchRequest{MessageID: messages[2], Mode: protocol.BranchEdit}, text); err != nil {
		t.Fatal(err)
	}
	addMessages(t, db, account, id, text, text)
	part := protocol.NewPartID()
	turn, _ := liveTurn(t, db, account, id, text,
		storetest.Started(id), &protocol.AnswerStarted{PartID: part, Format: "markdown"},
		&protocol.AnswerDelta{PartID: part, Delta: text}, &protocol.AnswerCompleted{PartID: part, Text: text})
	addFollowUps(t, db, account, id, protocol.FollowUpQueued, protocol.FollowUpHeld, protocol.FollowUpStarted)
	if _, err := db.Drafts.PutDraft(t.Context(), account, id, text, nil, nil); err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	batch.Queue(`update follow_ups set content = $1 where conversation_id = $2`, text, id)
	batch.Queue(`update conversations set provisional_title = $1 where conversation_id = $2`, text, id)
	batch.Queue(`update messages set routing = jsonb_build_object('reason', $1::text) where conversation_id = $2`, text, id)
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

// wantNoRowContaining fails when a row of any table contains the text, as characters or as hexadecimal bytes.
func wantNoRowContaining(t testing.TB, database pgtest.Database, text string) {
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
	kept := storetest.NewConversation(t, db, account, "kept").ConversationID
	keptTurn := fill(t, db, account, kept, "kept-text")
	gone := storetest.NewConversation(t, db, account, canary).ConversationID
	if _, err := db.Drafts.PutDraft(t.Context(), account, gone, canary, nil, nil); err != nil {
		t.Fatal(err)
	}
	turn := fill(t, db, account, gone, canary)

	live, err := db.Conversations.DeleteConversation(t.Context(), account, &conversations.Deletion{ConversationID: gone})
	if err != nil || live == nil || live.TurnID == nil || *live.TurnID != turn {
		t.Fatalf("with a live turn: %+v (%v)", live, err)
	}
	if w := live.WillDelete; w["messages"] != 8 || w["branches"] != 2 || w["follow_ups"] != 2 || w["live_turns"] != 1 {
		t.Errorf("will delete %v", w)
	}
	read(t, db, account, gone)
	endTurn(t, db, account, turn, canary)
	stale := int64(77)
	_, err = db.Conversations.DeleteConversation(t.Context(), account, &conversations.Deletion{ConversationID: gone, Version: &stale})
	storetest.WantCode(t, err, protocol.CodeStaleVersion)
	if live, err = db.Conversations.DeleteConversation(t.Context(), account, &conversations.Deletion{ConversationID: gone}); err != nil || live != nil {
		t.Fatalf("%+v (%v)", live, err)
	}
	wantHidden(t, db, account, gone, turn)

	// The purge is interrupted repeatedly: each attempt ends in the middle of a statement or between two batches.
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*300*time.Microsecond)
		done, err := db.Conversations.PurgeConversation(ctx, account, gone, 3)
		cancel()
		if err == nil && done {
			break
		}
	}
	if calls := purge(t, db, account, gone, 3); calls != 1 {
		t.Errorf("it took %d calls to report that nothing is left", calls)
	}
	wantNoRowContaining(t, database, canary)
	left, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[int],
		`select count(*) from usage_records where conversation_id = $1`, gone)
	if err != nil || left != 1 {
		t.Errorf("%d usage records left (%v)", left, err)
	}
	_, _, err = db.Conversations.PutConversation(t.Context(), account, gone, &conversations.ConversationWrite{}, nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)

	page, err := db.Conversations.Messages(t.Context(), account, &conversations.MessageQuery{ConversationID: kept, Limit: 100})
	if err != nil || len(page.Messages) != 6 || page.Messages[5].CoversSequence != 4 || *page.Messages[5].TurnID != keptTurn {
		t.Errorf("the other conversation is %+v (%v)", page, err)
	}
	counts, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[[]int], `select array[
		(select count(*) from turn_records), (select count(*) from turn_replays), (select count(*) from turn_events),
		(select count(*) from idempotency), (select count(*) from follow_ups), (select count(*) from branches)]::int[]`)
	if err != nil || fmt.Sprint(counts) != "[1 1 4 6 3 2]" {
		t.Errorf("the row counts of the other conversation are %v (%v)", counts, err)
	}
}

// wantHidden checks that every operation on a deleted conversation reports protocol.CodeNotFound, or has no effect.
func wantHidden(t *testing.T, db *persistence.Stores, account protocol.AccountID, id protocol.ConversationID, turn protocol.TurnID) {
	t.Helper()
	ctx := t.Context()
	message, err := pg.Row(ctx, db.DB, account, pgx.RowTo[protocol.MessageID], `select assistant_message_id from turns where turn_id = $1`, turn)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"conversation": func() error { _, err := db.Conversations.Conversation(ctx, account, id); return err },
		"page":         func() error { _, err := db.Conversations.ConversationPage(ctx, account, id); return err },
		"put": func() error {
			_, _, err := db.Conversations.PutConversation(ctx, account, id, &conversations.ConversationWrite{}, nil)
			return err
		},
		"title":   func() error { _, err := db.Conversations.SetTitle(ctx, account, id, "x", nil); return err },
		"archive": func() error { _, err := db.Conversations.SetArchived(ctx, account, id, true, nil); return err },
		"pin":     func() error { _, err := db.Conversations.SetPinned(ctx, account, id, true, nil); return err },
		"read":    func() error { _, err := db.Conversations.MarkRead(ctx, account, id, message); return err },
		"draft":   func() error { _, err := db.Drafts.PutDraft(ctx, account, id, "x", nil, nil); return err },
		"messages": func() error {
			_, err := db.Conversations.Messages(ctx, account, &conversations.MessageQuery{ConversationID: id, Limit: 1})
			return err
		},
		"around": func() error {
			_, err := db.Conversations.Messages(ctx, account, &conversations.MessageQuery{ConversationID: id, Around: &message, Limit: 1})
			return err
		},
		"message": func() error { _, err := db.Conversations.GetMessage(ctx, account, message); return err },
		"branches": func() error {
			_, _, err := db.Conversations.ListBranches(ctx, account, id, protocol.BranchID{}, 1)
			return err
		},
		"fork": func() error {
			_, err := db.Conversations.ForkConversation(ctx, account, id, message, "", nil)
			return err
		},
		"follow-ups": func() error { _, err := db.FollowUps.ListFollowUps(ctx, account, id, true, nil, 1); return err },
		"usage":      func() error { _, _, err := db.Usage.ListUsage(ctx, account, id, nil, 1); return err },
		"use":        func() error { _, err := db.Usage.RecordUsage(ctx, account, id, "k", 1, "u", nil); return err },
		"delete": func() error {
			_, err := db.Conversations.DeleteConversation(ctx, account, &conversations.Deletion{ConversationID: id})
			return err
		},
	} {
		if err := call(); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s of a deleted conversation: %v", name, err)
		}
	}
	if set, err := db.Conversations.SetAutoTitle(ctx, account, id, "x"); err != nil || set {
		t.Errorf("a deleted conversation got a title (%v)", err)
	}
	list, _, err := db.Conversations.ListConversations(ctx, account, &conversations.ConversationFilter{}, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.ConversationID == id {
			t.Error("a deleted conversation is listed")
		}
	}
	queued, err := pg.Row(ctx, db.DB, account, pgx.RowTo[int], `select count(*) from follow_ups where conversation_id = $1 and state in ('queued', 'held')`, id)
	if err != nil || queued != 0 {
		t.Errorf("%d follow-ups still wait (%v)", queued, err)
	}
}

func TestPurgeRefusesConversationsThatAreNotDeletedOrHaveALiveTurn(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	addMessages(t, db, account, id, "one", "two")
	if _, err := db.Conversations.PurgeConversation(t.Context(), account, id, 100); err == nil {
		t.Error("purged a conversation that was not deleted")
	}
	turn, _ := liveTurn(t, db, account, id, "three")
	if _, err := db.Exec(t.Context(), account, `update conversations set deleted_at = now() where conversation_id = $1`, id); err != nil {
		t.Fatal(err)
	}
	_, err := db.Conversations.PurgeConversation(t.Context(), account, id, 100)
	storetest.WantCode(t, err, protocol.CodeTurnInProgress)
	endTurn(t, db, account, turn, "four")
	purge(t, db, account, id, 100)
	left, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[int], `select count(*) from messages`)
	if err != nil || left != 0 {
		t.Errorf("%d messages left (%v)", left, err)
	}
}

func TestDeletionEnqueuesItsPurge(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	if _, err := db.Conversations.DeleteConversation(t.Context(), account, &conversations.Deletion{ConversationID: id}); err != nil {
		t.Fatal(err)
	}
	database.Admin(t, fmt.Sprintf(`do $$ begin
		if not exists (select from river.river_job where kind = 'purge_conversation' and args ->> 'conversation_id' = '%s') then
			raise exception 'no job';
		end if;
	end $$`, id))
}

func TestAConversationIsDeletedWhileItsCancelledTurnStillEnds(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	id := turn.Spec.ConversationID
	later := w.Request(&id, "later")
	later.IfBusy = protocol.BusyQueue
	if result, err := w.Try(later); err != nil || result.FollowUp == nil {
		t.Fatalf("queueing: %+v, %v", result, err)
	}
	other := protocol.NewTurnID()
	for what, named := range map[string]*protocol.TurnID{"no cancelled turn": nil, "another cancelled turn": &other, "a turn whose cancel is not stored": &turn.Spec.TurnID} {
		live, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: id, Cancelled: named})
		if err != nil || live == nil || live.TurnID == nil || *live.TurnID != turn.Spec.TurnID {
			t.Fatalf("with %s: %+v, %v", what, live, err)
		}
	}
	turn.Cancel()
	live, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: id, Cancelled: &turn.Spec.TurnID})
	if err != nil || live != nil {
		t.Fatalf("deleting: %+v, %v", live, err)
	}
	wantHidden(t, w.DB, w.Account, id, turn.Spec.TurnID)
	_, err = w.Try(w.Request(&id, "again"))
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = w.DB.Conversations.PurgeConversation(t.Context(), w.Account, id, 100)
	storetest.WantCode(t, err, protocol.CodeTurnInProgress)
	turn.Append(2)
	stored, err := w.Turns.LoadTurn(t.Context(), w.Account, turn.Spec.TurnID)
	if err != nil || !bytes.Equal(stored.Frames, turn.Frames) {
		t.Errorf("the log of the turn cannot be loaded: %v", err)
	}
	if started := turn.End(func(f *turnlog.Finish) {
		f.Returned = []turnlog.ReturnedInput{{FollowUpID: protocol.NewFollowUpID(), Text: "returned"}}
	}); started != nil {
		t.Errorf("the end of the turn started %+v", started.Spec)
	}
	purge(t, w.DB, w.Account, id, 100)
	if left := w.Count(`select (select count(*) from turns) + (select count(*) from messages) + (select count(*) from follow_ups) + (select count(*) from turn_events)`); left != 0 {
		t.Errorf("%d rows are left", left)
	}
}

func TestATurnThatStartsDuringADeletionIsNotLiveInADeletedConversation(t *testing.T) {
	w := storetest.NewWorld(t)
	for range 20 {
		id := storetest.NewConversation(t, w.DB, w.Account, "").ConversationID
		type outcome struct {
			result *turnlog.StartResult
			err    error
		}
		started := make(chan outcome, 1)
		go func() {
			result, err := w.Try(w.Request(&id, "hello"))
			started <- outcome{result, err}
		}()
		live, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: id})
		w.Must(err)
		start := <-started
		switch deleted := live == nil; {
		case deleted && protocol.CodeOf(start.err) != protocol.CodeNotFound:
			t.Fatalf("a turn started in a deleted conversation: %+v, %v", start.result, start.err)
		case !deleted:
			w.Must(start.err)
			w.Simulate(start.result.Spec, start.result.Begin).End(nil)
		}
	}
}

func TestADeletionInterruptsTheLiveTurnAfterItsConfirmation(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	id := turn.Spec.ConversationID
	refused := errors.New("not confirmed")
	confirmed, cancelled := 0, 0
	interrupt := conversations.Interruption{
		Confirm: func(live *conversations.LiveWork) error {
			if confirmed++; live.WillDelete["live_turns"] != 1 {
				t.Errorf("to confirm: %+v", live)
			}
			return nil
		},
		Cancel: func(_ context.Context, live protocol.TurnID) error {
			if cancelled++; live != turn.Spec.TurnID {
				t.Errorf("the cancel of %s", live)
			}
			return nil
		},
	}
	remove := func(interrupt conversations.Interruption) error {
		return w.DB.Conversations.DeleteWithLiveWork(t.Context(), w.Account, &conversations.Deletion{ConversationID: id}, interrupt)
	}
	err := remove(conversations.Interruption{Confirm: func(*conversations.LiveWork) error { return refused }, Cancel: interrupt.Cancel})
	if !errors.Is(err, refused) || cancelled > 0 {
		t.Errorf("without a confirmation: %v, after %d cancels", err, cancelled)
	}
	err = remove(interrupt) // no cancel is stored, as if another turn became live each time
	storetest.WantCode(t, err, protocol.CodeUnavailable)
	if confirmed != cancelled || cancelled != 3 {
		t.Errorf("%d confirmations and %d cancels", confirmed, cancelled)
	}
	confirmed = 0
	interrupt.Cancel = func(context.Context, protocol.TurnID) error {
		turn.Cancel()
		return nil
	}
	w.Must(remove(interrupt))
	if wantHidden(t, w.DB, w.Account, id, turn.Spec.TurnID); confirmed != 1 {
		t.Errorf("%d confirmations", confirmed)
	}
}
