package turns_test

import (
	"slices"
	"testing"

	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// A turn notes the consents of its own account, also when it starts together with others, and none in a temporary conversation.
func TestATurnNotesTheConsentsOfItsAccount(t *testing.T) {
	w := storetest.NewWorld(t)
	other, third := pgtest.Account(t, w.DB), pgtest.Account(t, w.DB)
	for account, source := range map[protocol.AccountID]protocol.MemorySource{w.Account: protocol.SourceConversations, other: protocol.SourceProjects} {
		for _, granted := range []protocol.MemorySource{source, protocol.SourceFiles} {
			_, err := w.DB.Memory.SetConsent(t.Context(), account, protocol.MemoryConsent{Source: granted, Granted: true})
			w.Must(err)
		}
		_, err := w.DB.Memory.SetConsent(t.Context(), account, protocol.MemoryConsent{Source: protocol.SourceFiles})
		w.Must(err)
	}
	temporary := requestOf(w, other, "secret")
	temporary.Temporary = true
	want := [][]protocol.MemorySource{{protocol.SourceConversations}, {protocol.SourceProjects}, nil, nil}
	started := w.Turns.StartTogether(t.Context(), on(w.Runner, w.Request(nil, "mine"), requestOf(w, other, "theirs"), requestOf(w, third, "nothing"), temporary)...)
	for i, s := range started {
		if turn := wantStarted(w, s, false); !slices.Equal(turn.Spec.Granted, want[i]) {
			t.Errorf("turn %d notes %q, want %q", i, turn.Spec.Granted, want[i])
		}
	}
	first := w.Simulate(started[0].Result.Spec, started[0].Result.Begin)
	first.End(nil)
	if alone := w.Start(w.Request(&first.Spec.ConversationID, "more")); !slices.Equal(alone.Spec.Granted, want[0]) {
		t.Errorf("the next turn notes %q", alone.Spec.Granted)
	}
	hidden := w.Simulate(started[3].Result.Spec, started[3].Result.Begin)
	hidden.End(nil)
	next := requestOf(w, other, "secret again")
	next.ConversationID = &hidden.Spec.ConversationID
	if alone := w.Start(next); alone.Spec.Granted != nil {
		t.Errorf("a turn of a temporary conversation notes %q", alone.Spec.Granted)
	}
}
