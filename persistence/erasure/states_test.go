package erasure_test

import (
	"context"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/persistence/audit"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

// stateChanges are the calls that change the state of an account. Whether one is refused is tested elsewhere.
var stateChanges = map[protocol.AccountTrigger]func(context.Context, *persistence.Stores, protocol.AccountID){
	protocol.AccountDisable: func(ctx context.Context, db *persistence.Stores, account protocol.AccountID) {
		_ = db.Operator.DisableAccount(ctx, account, time.Now(), audit.Requester{})
	},
	protocol.AccountEnable: func(ctx context.Context, db *persistence.Stores, account protocol.AccountID) {
		_ = db.Operator.EnableAccount(ctx, account, audit.Requester{})
	},
	protocol.AccountErase: func(ctx context.Context, db *persistence.Stores, account protocol.AccountID) {
		_, _ = db.Erasures.Begin(ctx, account, time.Now(), nil, audit.Requester{})
	},
}

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
	made := map[protocol.Transition[protocol.AccountState, protocol.AccountTrigger]]bool{}
	for _, from := range protocol.AccountStates {
		for trigger, change := range stateChanges {
			account := pgtest.Account(t, db)
			switch from {
			case protocol.AccountDisabled:
				stateChanges[protocol.AccountDisable](t.Context(), db, account)
			case protocol.AccountErasing:
				stateChanges[protocol.AccountErase](t.Context(), db, account)
			}
			change(t.Context(), db, account)
			want, legal := from, false
			for _, row := range protocol.AccountTransitions {
				if row.From == from && row.Trigger == trigger {
					want, legal = row.To, true
				}
			}
			made[protocol.Transition[protocol.AccountState, protocol.AccountTrigger]{From: from, Trigger: trigger, To: want}] = legal
			if state := stateOf(account); state != want {
				t.Errorf("%s: an account that was %s is %s, want %s", trigger, from, state, want)
			}
		}
	}
	for _, row := range protocol.AccountTransitions {
		if !made[row] {
			t.Errorf("nothing makes the transition %s of an account that is %s", row.Trigger, row.From)
		}
	}
}
