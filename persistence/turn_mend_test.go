package persistence_test

import (
	"bytes"
	"testing"

	"turnstone/protocol"
)

// A log in which a row is missing and another one is noise is ended all the same, and its readers get every sequence once.
func TestADamagedTurnIsEndedAndReadWithoutAGap(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	for range 4 {
		turn.append(2) // 2-3, 4-5, 6-7, 8-9
	}
	w.database.Admin(t, `delete from turn_events where first_sequence = 4`)
	w.database.Admin(t, `update turn_events set frames = 'noise' where first_sequence = 6`)
	w.database.Admin(t, `update turns set spec = '{"turn_id": 7}'`)
	if _, err := w.turns.LoadTurn(t.Context(), w.account, turn.spec.TurnID); err == nil || protocol.CodeOf(err) == protocol.CodeUnavailable {
		t.Fatalf("it was read: %v", err)
	}
	stored, err := w.turns.MendTurn(t.Context(), w.account, turn.spec.TurnID)
	w.must(err)
	if stored.Spec.AssistantMessageID != turn.spec.AssistantMessageID || stored.Head.LastSequence != 9 {
		t.Errorf("mended: %+v, %+v", stored.Spec, stored.Head)
	}
	finish := turn.finish()
	finish.Spec, finish.Mended = stored.Spec, true
	_, err = w.turns.FinishTurn(t.Context(), finish)
	w.must(err)
	log := turn.read(0, 1<<20)
	if !bytes.Equal(log, append(stored.Frames, finish.Frames...)) {
		t.Errorf("its readers get %s", log)
	}
	var kinds []string
	next := int64(1)
	for line := range protocol.FrameLines(log) {
		envelope, payload, err := protocol.DecodeEvent(line)
		if err != nil || envelope.Sequence != next || payload == nil {
			t.Fatalf("event %d: %s, %v", next, line, err)
		}
		kinds = append(kinds, string(envelope.Type))
		next++
	}
	if len(kinds) != 10 || kinds[2] != "answer.delta" || kinds[3] != "turn.state" || kinds[6] != "turn.state" || kinds[8] != "answer.delta" || kinds[9] != "turn.finished" {
		t.Errorf("events: %v", kinds)
	}
	w.start(w.request(&turn.spec.ConversationID, "the conversation is free"))
}

// Postgres refuses rows whose page is damaged. A policy that raises the same error stands in for that.
func TestATurnOfWhichPostgresReadsNothingIsEnded(t *testing.T) {
	for _, tables := range [][]string{{"turn_events"}, {"turn_events", "turn_records"}} {
		w := newWorld(t)
		turn := w.start(w.request(nil, "hello"))
		turn.append(2)
		w.database.Admin(t, `
create function damaged() returns boolean language plpgsql as $$ begin
    raise exception 'invalid page in block 7' using errcode = 'data_corrupted';
end $$`)
		for _, table := range tables {
			w.database.Admin(t, `create policy damage on `+table+` as restrictive for select using (damaged())`)
		}
		w.database.Admin(t, `insert into turn_records (account_id, turn_id, kind, key, sequence, body) select account_id, turn_id, 'cancel', '', 1, '{}' from turns`)
		if _, err := w.turns.LoadTurn(t.Context(), w.account, turn.spec.TurnID); err == nil || protocol.CodeOf(err) == protocol.CodeUnavailable {
			t.Fatalf("%v: it was read: %v", tables, err)
		}
		stored, err := w.turns.MendTurn(t.Context(), w.account, turn.spec.TurnID)
		w.must(err)
		finish := turn.finish()
		finish.Spec, finish.Mended = stored.Spec, true
		_, err = w.turns.FinishTurn(t.Context(), finish)
		w.must(err)
		log, last, err := w.turns.TurnFrames(t.Context(), w.account, turn.spec.TurnID, 0, 1<<20)
		if err != nil || last != finish.Last || !bytes.Equal(log, append(stored.Frames, finish.Frames...)) {
			t.Errorf("%v: its readers get %s, %v", tables, log, err)
		}
		w.start(w.request(&turn.spec.ConversationID, "the conversation is free"))
	}
}

func TestASeizedTurnIsTakenFromItsOwner(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	other := protocol.NewNodeID()
	w.must(w.directory.Register(t.Context(), other, "", nil))
	claim, err := w.directory.SeizeTurn(t.Context(), other, w.account, turn.spec.TurnID)
	if err != nil || claim.Epoch != 2 || claim.Adoptions != 1 || claim.Cause != "operator" {
		t.Fatalf("%+v, %v", claim, err)
	}
	if err := w.append(turn.chunk(1)); err != protocol.ErrFenced {
		t.Errorf("its owner's append: %v", err)
	}
	stranger := protocol.NewAccountID()
	if _, err := w.directory.SeizeTurn(t.Context(), other, stranger, turn.spec.TurnID); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("another account's: %v", err)
	}
}
