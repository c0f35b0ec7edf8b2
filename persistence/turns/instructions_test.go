package turns_test

import (
	"testing"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestATurnKeepsTheInstructionsThatItsAccountHadAtTheStart(t *testing.T) {
	w := storetest.NewWorld(t)
	instruct := func(version int64, content string) {
		_, err := w.DB.Accounts.PutInstructions(w.Context(), w.Account, &version, content)
		w.Must(err)
	}
	if spec := w.Start(w.Request(nil, "before")).Spec; spec.AccountInstructions != 0 {
		t.Errorf("a turn without instructions has %+v", spec)
	}
	instruct(0, "Be brief.")
	temporary := w.Request(nil, "hello")
	temporary.Temporary = true
	turn := w.Start(temporary)
	instruct(1, "Be long.")
	stored, err := w.Turns.LoadTurn(t.Context(), w.Account, turn.Spec.TurnID)
	w.Must(err)
	text, err := w.Turns.Instructions(t.Context(), stored.Spec)
	if err != nil || text.Account != "Be brief." || text.Project != "" {
		t.Errorf("an adopted turn has the instructions %+v, %v", text, err)
	}
	foreign := *stored.Spec
	foreign.AccountID = w.OtherAccount()
	_, err = w.Turns.Instructions(t.Context(), &foreign)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	w.Queued(turn.Spec.ConversationID, "later")
	if next := turn.End(nil); next == nil || next.Spec.AccountInstructions != 2 {
		t.Errorf("the turn of a follow-up is %+v", next)
	}
	started := w.Turns.StartTogether(t.Context(), on(w.Runner, w.Request(nil, "one"), requestOf(w, w.OtherAccount(), "two"))...)
	for i, want := range []int64{2, 0} {
		if started[i].Err != nil || started[i].Result.Spec.AccountInstructions != want {
			t.Errorf("start %d of a group: %+v", i, started[i])
		}
	}
	if _, err := w.Turns.Instructions(t.Context(), &turnlog.Spec{AccountID: w.Account}); err != nil {
		t.Errorf("a turn without instructions: %v", err)
	}
}
