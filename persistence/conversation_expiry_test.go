package persistence_test

import (
	"testing"

	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func TestATemporaryConversationIsErasedADayAfterItsLastActivity(t *testing.T) {
	w := newWorld(t)
	begin := func(temporary bool) *actedTurn {
		start := w.request(nil, "hello")
		start.Temporary = temporary
		return w.start(start)
	}
	kept, young, live, old := begin(false), begin(true), begin(true), (*actedTurn)(nil)
	kept.end(nil)
	old = begin(true)
	old.end(nil)
	young.end(nil)
	if titles := w.jobs("title"); titles != 1 {
		t.Errorf("%d titles were asked for, want that of the conversation that is kept", titles)
	}
	w.database.Admin(t, `update conversations set last_activity_at = now() - interval '25 hours' where conversation_id <> $1`, young.spec.ConversationID)
	w.must(w.db.Expire(t.Context()))
	for name, c := range map[string]struct {
		turn *actedTurn
		code protocol.Code
	}{"kept": {kept, ""}, "young": {young, ""}, "live": {live, ""}, "old": {old, protocol.CodeNotFound}} {
		_, err := w.db.Conversation(t.Context(), w.account, c.turn.spec.ConversationID)
		if protocol.CodeOf(err) != c.code && (err != nil || c.code != "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if purges := w.jobs("purge_conversation"); purges != 1 {
		t.Errorf("%d purges", purges)
	}
	w.must(w.db.Expire(t.Context()))
	if purges := w.jobs("purge_conversation"); purges != 1 {
		t.Errorf("%d purges after the next round", purges)
	}
}

// jobs counts the jobs of a kind.
func (w *world) jobs(kind string) (n int) {
	w.Helper()
	w.must(w.adminConn().QueryRow(w.Context(), `select count(*) from river.river_job where kind = $1`, kind).Scan(&n))
	return n
}

func (w *world) otherAccount() protocol.AccountID { return pgtest.Account(w.T, w.db) }
