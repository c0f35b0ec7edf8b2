package conversations_test

import (
	"testing"

	"turnstone/persistence/conversations"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func TestATemporaryConversationIsErasedADayAfterItsLastActivity(t *testing.T) {
	w := storetest.NewWorld(t)
	begin := func(temporary bool) *storetest.Turn {
		start := w.Request(nil, "hello")
		start.Temporary = temporary
		return w.Start(start)
	}
	kept, young, live, old := begin(false), begin(true), begin(true), (*storetest.Turn)(nil)
	kept.End(nil)
	old = begin(true)
	old.End(nil)
	young.End(nil)
	if titles := w.Jobs("title"); titles != 1 {
		t.Errorf("%d title jobs, want only that of the conversation that is not temporary", titles)
	}
	w.Database.Admin(t, `update conversations set last_activity_at = now() - interval '25 hours' where conversation_id <> $1`, young.Spec.ConversationID)
	w.Must(w.DB.Conversations.Expire(t.Context()))
	for name, c := range map[string]struct {
		turn *storetest.Turn
		code protocol.Code
	}{"kept": {kept, ""}, "young": {young, ""}, "live": {live, ""}, "old": {old, protocol.CodeNotFound}} {
		_, err := w.DB.Conversations.Conversation(t.Context(), w.Account, c.turn.Spec.ConversationID)
		if protocol.CodeOf(err) != c.code && (err != nil || c.code != "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if purges := w.Jobs("purge_conversation"); purges != 1 {
		t.Errorf("%d purge jobs", purges)
	}
	w.Must(w.DB.Conversations.Expire(t.Context()))
	if purges := w.Jobs("purge_conversation"); purges != 1 {
		t.Errorf("%d purge jobs after the second expiry", purges)
	}
}

// Each of two ends takes the other conversation for one that still has the file, unless one waits for the other.
func TestAFileOfTwoTemporaryConversationsThatEndTogetherEndsWithThem(t *testing.T) {
	w := storetest.NewWorld(t)
	var made [2]protocol.ConversationID
	for i := range made {
		start := w.Request(nil, "hello")
		start.Temporary = true
		turn := w.Start(start)
		turn.End(nil)
		made[i] = turn.Spec.ConversationID
	}
	file := protocol.NewFileID()
	w.Database.Admin(t, `insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at, purpose)
		values ($1, $2, 'a.txt', 'text/plain', 'text', 1, sha256('x'), 'x', 'x', now(), now(), now(), 'attachment')`, w.Account, file)
	w.Database.Admin(t, `update conversations set draft_attachments = array[$1::uuid]`, file)
	gate, err := w.AdminConn().Begin(t.Context()) // both wait for it at their end
	w.Must(err)
	_, err = gate.Exec(t.Context(), `lock table river.river_job in access exclusive mode`)
	w.Must(err)
	ended := make(chan error, len(made))
	for _, id := range made {
		go func() {
			_, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: id})
			ended <- err
		}()
	}
	observer := w.AdminConn()
	storetest.Eventually(t, func() bool {
		var waiting int
		w.Must(observer.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting))
		return waiting >= len(made)
	})
	w.Must(gate.Rollback(t.Context()))
	for range made {
		w.Must(<-ended)
	}
	if n := w.Count(`select count(*) from files where deleted_at is null`); n != 0 {
		t.Error("the file stays")
	}
}
