package turns_test

import (
	"bytes"
	"testing"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// One row of the turn's log is missing and another one cannot be decoded. The turn can still be ended, and its readers
// get every sequence once.
func TestADamagedTurnIsEndedAndReadWithoutAGap(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	for range 4 {
		turn.Append(2) // 2-3, 4-5, 6-7, 8-9
	}
	w.Database.Admin(t, `delete from turn_events where first_sequence = 4`)
	w.Database.Admin(t, `update turn_events set frames = 'noise' where first_sequence = 6`)
	w.Database.Admin(t, `update turns set spec = '{"turn_id": 7}'`)
	if _, err := w.Turns.LoadTurn(t.Context(), w.Account, turn.Spec.TurnID); err == nil || protocol.CodeOf(err) == protocol.CodeUnavailable {
		t.Fatalf("the damaged turn was read: %v", err)
	}
	stored, err := w.Turns.RepairTurn(t.Context(), w.Account, turn.Spec.TurnID)
	w.Must(err)
	if stored.Spec.AssistantMessageID != turn.Spec.AssistantMessageID || stored.Head.LastSequence != 9 {
		t.Errorf("repaired: %+v, %+v", stored.Spec, stored.Head)
	}
	finish := turn.Finish()
	finish.Spec, finish.Repaired = stored.Spec, true
	_, err = w.Turns.FinishTurn(t.Context(), finish, w.Runner)
	w.Must(err)
	log := turn.Read(0, 1<<20)
	if !bytes.Equal(log, append(stored.Frames, finish.Frames...)) {
		t.Errorf("the readers get %s", log)
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
	w.Start(w.Request(&turn.Spec.ConversationID, "the conversation is free"))
}

// Postgres refuses to read rows of a damaged page. A policy that raises the same error simulates that.
func TestATurnWithUnreadableRowsCanBeEnded(t *testing.T) {
	for _, tables := range [][]string{{"turn_events"}, {"turn_events", "turn_records"}} {
		w := storetest.NewWorld(t)
		turn := w.Start(w.Request(nil, "hello"))
		turn.Append(2)
		w.Database.Admin(t, `
create function damaged() returns boolean language plpgsql as $$ begin
    raise exception 'invalid page in block 7' using errcode = 'data_corrupted';
end $$`)
		for _, table := range tables {
			w.Database.Admin(t, `create policy damage on `+table+` as restrictive for select using (damaged())`)
		}
		w.Database.Admin(t, `insert into turn_records (account_id, turn_id, kind, key, sequence, body) select account_id, turn_id, 'cancel', '', 1, '{}' from turns`)
		if _, err := w.Turns.LoadTurn(t.Context(), w.Account, turn.Spec.TurnID); err == nil || protocol.CodeOf(err) == protocol.CodeUnavailable {
			t.Fatalf("%v: the damaged turn was read: %v", tables, err)
		}
		stored, err := w.Turns.RepairTurn(t.Context(), w.Account, turn.Spec.TurnID)
		w.Must(err)
		finish := turn.Finish()
		finish.Spec, finish.Repaired = stored.Spec, true
		_, err = w.Turns.FinishTurn(t.Context(), finish, w.Runner)
		w.Must(err)
		log, last, err := w.Turns.TurnFrames(t.Context(), w.Account, turn.Spec.TurnID, 0, 1<<20)
		if err != nil || last != finish.Last || !bytes.Equal(log, append(stored.Frames, finish.Frames...)) {
			t.Errorf("%v: the readers get %s, %v", tables, log, err)
		}
		w.Start(w.Request(&turn.Spec.ConversationID, "the conversation is free"))
	}
}
