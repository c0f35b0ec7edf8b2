package research

import (
	"context"
	"testing"

	"turnstone/protocol"
)

func TestOneCommandAtATimeClaimsATask(t *testing.T) {
	var locks claimLocks
	of := ownedTask{protocol.NewAccountID(), protocol.NewTaskID()}
	unlock, err := locks.lock(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := locks.lock(late, of); err == nil {
		t.Error("a claim has two holders")
	}
	other, err := locks.lock(t.Context(), ownedTask{protocol.NewAccountID(), of.task})
	if err != nil {
		t.Fatal(err)
	}
	other()
	unlock()
	if again, err := locks.lock(t.Context(), of); err != nil {
		t.Error(err)
	} else {
		again()
	}
	if len(locks.locks) > 0 {
		t.Errorf("%d locks are kept", len(locks.locks))
	}
}
