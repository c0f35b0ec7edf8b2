package erasure_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"turnstone/persistence/audit"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func TestAnAccountMovesOnlyAsTheTableOfStatesAllows(t *testing.T) {
	db := pgtest.New(t)
	stateOf := func(account protocol.AccountID) protocol.AccountState {
		page, err := db.Accounts.ListAccounts(t.Context(), protocol.AccountID{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			if page[i].AccountID == account {
				return page[i].State
			}
		}
		t.Fatal("the account is not listed")
		return ""
	}
	changes := map[protocol.AccountTrigger]func(protocol.AccountID){
		protocol.AccountDisable: func(account protocol.AccountID) {
			_ = db.Operator.DisableAccount(t.Context(), account, time.Now(), audit.Requester{})
		},
		protocol.AccountEnable: func(account protocol.AccountID) {
			_ = db.Operator.EnableAccount(t.Context(), account, audit.Requester{})
		},
		protocol.AccountErase: func(account protocol.AccountID) {
			_, _ = db.Erasures.Begin(t.Context(), account, time.Now(), nil, audit.Requester{})
		},
	}
	to := map[protocol.AccountState]protocol.AccountTrigger{protocol.AccountDisabled: protocol.AccountDisable, protocol.AccountErasing: protocol.AccountErase}
	pgtest.CheckTransitions(t, protocol.AccountTransitions, protocol.AccountStates, slices.Collect(maps.Keys(changes)),
		func(state protocol.AccountState, _ protocol.AccountTrigger) pgtest.Object[protocol.AccountState, protocol.AccountTrigger] {
			account := pgtest.Account(t, db)
			if change := changes[to[state]]; change != nil {
				change(account)
			}
			return pgtest.Object[protocol.AccountState, protocol.AccountTrigger]{
				Fire:  func(trigger protocol.AccountTrigger) { changes[trigger](account) },
				State: func() protocol.AccountState { return stateOf(account) },
			}
		})
}
