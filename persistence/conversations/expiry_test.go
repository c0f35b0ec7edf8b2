package conversations_test

import (
	"testing"

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
