package conversations_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// mark is a mark of a conversation that its owner sets and clears.
type mark struct {
	set  func(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, set bool, version *int64) (*protocol.Conversation, error)
	time func(*protocol.Conversation) *time.Time
}

func marksOf(o *conversations.Store) map[string]mark {
	return map[string]mark{
		"archive": {o.SetArchived, func(c *protocol.Conversation) *time.Time { return c.ArchivedAt }},
		"pin":     {o.SetPinned, func(c *protocol.Conversation) *time.Time { return c.PinnedAt }},
	}
}

func TestMarksChangeUnderTheVersionRule(t *testing.T) {
	db := pgtest.New(t)
	account, other := pgtest.Account(t, db), pgtest.Account(t, db)
	for name, mark := range marksOf(db.Conversations) {
		t.Run(name, func(t *testing.T) {
			id := storetest.NewConversation(t, db, account, "A").ConversationID
			version := func(n int64) *int64 { return &n }
			for _, step := range []struct {
				name    string
				account protocol.AccountID
				set     bool
				version *int64
				code    protocol.Code // empty: succeeds
				want    int64         // the version afterwards
				isSet   bool
			}{
				{"of another account", other, true, version(1), protocol.CodeNotFound, 1, false},
				{"without a version", account, true, nil, protocol.CodeVersionRequired, 1, false},
				{"clearing what is not set", account, false, version(1), "", 1, false},
				{"clearing what is not set without a version", account, false, nil, protocol.CodeVersionRequired, 1, false},
				{"setting", account, true, version(1), "", 2, true},
				{"a repetition that knows the new version", account, true, version(2), "", 2, true},
				{"a repetition without a version", account, true, nil, protocol.CodeVersionRequired, 2, true},
				{"a repetition of the request", account, true, version(1), protocol.CodeStaleVersion, 2, true},
				{"a stale version", account, false, version(1), protocol.CodeStaleVersion, 2, true},
				{"clearing", account, false, version(2), "", 3, false},
			} {
				before := read(t, db, account, id)
				c, err := mark.set(t.Context(), step.account, id, step.set, step.version)
				if step.code == "" && err != nil || step.code != "" && protocol.CodeOf(err) != step.code {
					t.Fatalf("%s: %v, want %q", step.name, err, step.code)
				}
				var conflict *protocol.Error
				if errors.As(err, &conflict) && step.code != protocol.CodeNotFound {
					c, _ = conflict.Current.(*protocol.Conversation)
				}
				if stored := read(t, db, account, id); stored.Version != step.want || (mark.time(stored) != nil) != step.isSet {
					t.Errorf("%s: version %d, mark %v", step.name, stored.Version, mark.time(stored))
				} else if step.account == account && (c == nil || c.Version != step.want) {
					t.Errorf("%s: returns %+v", step.name, c)
				} else if !stored.LastActivityAt.Equal(before.LastActivityAt) {
					t.Errorf("%s: the last activity changed", step.name)
				}
			}
		})
	}
}

func TestOfSimultaneousMarksWithOneVersionOneWins(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id, one := storetest.NewConversation(t, db, account, "A").ConversationID, int64(1)
	failures := storetest.Together(8, func(i int) (err error) {
		if i%2 == 0 {
			_, err = db.Conversations.SetPinned(t.Context(), account, id, true, &one)
		} else {
			_, err = db.Conversations.SetArchived(t.Context(), account, id, true, &one)
		}
		return err
	})
	won := 0
	for _, err := range failures {
		if err == nil {
			won++
		} else if protocol.CodeOf(err) != protocol.CodeStaleVersion {
			t.Errorf("%v", err)
		}
	}
	if c := read(t, db, account, id); won != 1 || c.Version != 2 || (c.PinnedAt == nil) == (c.ArchivedAt == nil) {
		t.Errorf("%d won: %+v", won, c)
	}
}
